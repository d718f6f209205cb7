import test from 'ava';
import type { Member } from '../../../../agent/model/load-balancer.ts';
import { deletions } from '../../../../agent/nftables/flows/forget-flows.ts';
import type { KernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';

function member(address: string): Member {
  return { name: `${address}:5353`, id: 1, address, port: 5_353, weight: 1, state: 'ready', target: '' };
}

function listener(members: readonly string[], rest: Partial<KernelListener> = {}): KernelListener {
  const all = members.map(member);
  return {
    name: 'default:dns:udp:53:v4',
    family: 'v4',
    protocol: 'UDP',
    port: 53,
    addresses: ['192.0.2.1'],
    clients: undefined,
    by: 'flow',
    affinitySeconds: 0,
    sourceAddress: 'load-balancer',
    slots: all,
    members: all,
    down: [],
    ...rest,
  };
}

const PLACE = '-D -f ipv4 -p udp --orig-dst 192.0.2.1 --orig-port-dst 53';

for (const [title, before, after, now, later] of [
  [
    'Flows of a member that is gone are deleted after its last answers',
    listener(['10.0.0.1', '10.0.0.2']),
    listener(['10.0.0.2']),
    [],
    [`${PLACE} --reply-src 10.0.0.1 --reply-port-src 5353`],
  ],
  [
    'Flows of the last member that is gone too',
    listener(['10.0.0.1']),
    listener([]),
    [],
    [`${PLACE} --reply-src 10.0.0.1 --reply-port-src 5353`],
  ],
  [
    'Flows without a member are deleted at once when there is a first one',
    listener([]),
    listener(['10.0.0.1']),
    [`${PLACE} --reply-src 192.0.2.1`],
    [],
  ],
  [
    'All flows of a listener that is gone are deleted at once',
    listener(['10.0.0.1']),
    undefined,
    [PLACE],
    [],
  ],
  ['A new member changes no flow', listener(['10.0.0.1']), listener(['10.0.0.1', '10.0.0.2']), [], []],
  [
    'Of TCP those are deleted that have no answer, or that have ended',
    undefined,
    listener(['10.0.0.1'], { protocol: 'TCP' }),
    ['SYN_SENT', 'LAST_ACK', 'TIME_WAIT', 'CLOSE'].map(
      (state) => `${PLACE.replace('udp', 'tcp')} --reply-src 192.0.2.1 --state ${state}`,
    ),
    [],
  ],
  ['Flows of TCP stay', listener(['10.0.0.1'], { protocol: 'TCP' }), undefined, [], []],
] as const) {
  test(title, (t) => {
    const words = deletions({ before, after });
    t.deepEqual(
      words.now.map((each) => each.join(' ')),
      now,
    );
    t.deepEqual(
      words.later.map((each) => each.join(' ')),
      later,
    );
  });
}
