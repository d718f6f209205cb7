import test from 'ava';
import type { Member } from '../../../../agent/model/load-balancer.ts';
import {
  FlowCounts,
  lastingSilence,
  NEARLY_ALL_FLOWS,
} from '../../../../agent/nftables/flows/flow-counts.ts';
import { nextHop, silenceInWords, whyShort } from '../../../../agent/nftables/flows/flow-faults.ts';
import { strictFilters } from '../../../../agent/nftables/flows/flow-preflight.ts';
import type { KernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';

const VIP = '192.0.2.1';
const SOURCES = {
  groups: [{ id: 51, addresses: ['2001:db8::1', '10.0.0.250', '10.0.0.251'] }],
  groupOf: (vip: string) => (vip === VIP ? 51 : 0),
};

function member(address: string, state: Member['state'] = 'ready'): Member {
  return { name: `${address}:5353`, id: 1, address, port: 5_353, weight: 1, state, target: '' };
}

function listener(rest: Partial<KernelListener> = {}): KernelListener {
  return {
    name: 'default:web:tcp:53:v4',
    family: 'v4',
    protocol: 'TCP',
    port: 53,
    addresses: [VIP],
    clients: undefined,
    by: 'flow',
    affinitySeconds: 0,
    sourceAddress: 'client',
    slots: [],
    members: ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => member(address)),
    down: [],
    ...rest,
  };
}

/** As conntrack 1.4.7 writes a flow; `source`: the address that the member sees. */
function line(protocol: string, to: string, isAnswered: boolean, source = '198.51.100.7'): string {
  const start = { tcp: 'tcp      6 117 SYN_SENT', udp: 'udp      17 29', sctp: 'sctp     132 3 COOKIE_WAIT' };
  const there = `src=198.51.100.7 dst=${VIP} sport=40000 dport=53`;
  const back = `src=${to} dst=${source} sport=5353 dport=40000`;
  const [begin, end] = isAnswered ? ['', ' [ASSURED]'] : ['[UNREPLIED] ', ''];
  return `${start[protocol as keyof typeof start]} ${there} ${begin}${back}${end} mark=0 use=1`;
}

function counted(lines: readonly string[], listeners = [listener()]): FlowCounts {
  const counts = new FlowCounts(listeners);
  for (const each of lines) counts.add(each);
  return counts;
}

const namesOf = (counts: FlowCounts) =>
  counts.silent.flatMap(({ members }) => members.map(({ address }) => address));

test('A member that is ready and answers no flow is silent', (t) => {
  const counts = counted([
    line('tcp', '10.0.0.1', false),
    line('tcp', '10.0.0.1', true),
    line('tcp', '10.0.0.2', false),
    line('tcp', '10.0.0.2', false),
  ]);
  t.deepEqual(namesOf(counts), ['10.0.0.2']);
});

for (const [what, lines, rest] of [
  ['a member that drains', [line('tcp', '10.0.0.4', false)], { members: [member('10.0.0.4', 'drain')] }],
  ['a member that is gone', [line('tcp', '10.0.0.9', false)], {}],
  ['a flow that the load balancer is the source of', [line('tcp', '10.0.0.1', false, '10.0.0.250')], {}],
  ['a flow without a member', [line('tcp', VIP, false)], {}],
  ['another protocol', [line('udp', '10.0.0.1', false)], {}],
  ['UDP of which no member answers', [line('udp', '10.0.0.1', false)], { protocol: 'UDP' }],
  ['a line of something else', ['icmp     1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=1'], {}],
] as const)
  test(`No silence is found in ${what}`, (t) => {
    t.deepEqual(namesOf(counted(lines, [listener(rest)])), []);
  });

test('UDP of which another member answers shows the silent one', (t) => {
  const lines = [line('udp', '10.0.0.1', true), line('udp', '10.0.0.2', false)];
  t.deepEqual(namesOf(counted(lines, [listener({ protocol: 'UDP' })])), ['10.0.0.2']);
});

test('Silence lasts if the member was silent before, too', (t) => {
  const before = counted([line('tcp', '10.0.0.1', false), line('tcp', '10.0.0.2', false)]).silent;
  const now = counted([line('tcp', '10.0.0.2', false), line('tcp', '10.0.0.3', false)]).silent;
  const [lasting] = lastingSilence(before, now);
  t.deepEqual(
    lasting?.members.map(({ address }) => address),
    ['10.0.0.2'],
  );
  t.deepEqual(lastingSilence([], now), []);
});

test('The words name members, their next hop and the other choice', (t) => {
  const members = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5'].map((each) => member(each));
  t.is(
    silenceInWords({ listener: listener(), members }, SOURCES),
    'Members of TCP port 53 get packets, but none of their answers comes back through this host: 10.0.0.1:5353, 10.0.0.2:5353, 10.0.0.3:5353 and 2 more; their route to the clients must lead to 10.0.0.250, or "headgate.io/source-address" be "load-balancer"',
  );
  t.is(nextHop(listener({ addresses: ['192.0.2.9'] }), SOURCES), 'this host');
});

test('A source address is short of ports from four fifths of them on, to one member', (t) => {
  const ofOne = (count: number) =>
    Array.from({ length: count }, () => line('udp', '10.0.0.1', true, '10.0.0.250'));
  const udp = listener({ protocol: 'UDP', sourceAddress: 'load-balancer' });
  const apart = [...ofOne(NEARLY_ALL_FLOWS - 1), line('udp', '10.0.0.2', true, '10.0.0.250')];
  t.is(whyShort(counted([...apart, line('udp', '10.0.0.1', true, '10.0.0.251')], [udp])), '');
  t.is(
    whyShort(counted(ofOne(NEARLY_ALL_FLOWS), [udp])),
    '10.0.0.250 has 51610 flows of UDP to 10.0.0.1 port 5353, and ports for 64512: add addresses to "anchors" of the setting "vrrp", or members to the Service',
  );
});

test('strictFilters() names the interfaces whose filter is strict', (t) => {
  const text = (values: Readonly<Record<string, number>>) =>
    Object.entries(values)
      .map(([name, value]) => `/proc/sys/net/ipv4/conf/${name}/rp_filter:${value}\n`)
      .join('');
  t.deepEqual(strictFilters(text({ all: 0, default: 1, lo: 1, eth0: 0, eth1: 2 })), []);
  t.deepEqual(strictFilters(text({ all: 2, eth0: 1 })), []);
  const [finding] = strictFilters(text({ all: 1, default: 0, lo: 0, eth0: 0, 'eth1.5': 2 }));
  t.true(finding?.detail.startsWith('strict on eth0: '), finding?.detail);
});
