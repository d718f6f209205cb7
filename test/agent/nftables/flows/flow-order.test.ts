import test from 'ava';
import type { Member } from '../../../../agent/model/load-balancer.ts';
import { dueAfter, orderOf, placeKey } from '../../../../agent/nftables/flows/flow-order.ts';
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

const UDP = 'c0000201003511';
const ONE = '0a00000114e9';
const TWO = '0a00000214e9';

for (const [title, before, after, due] of [
  [
    'A place is due after the last answers of a member that is gone',
    listener(['10.0.0.1', '10.0.0.2']),
    listener(['10.0.0.2']),
    { now: [], later: [UDP] },
  ],
  [
    'A place is due after the last answers of its last member',
    listener(['10.0.0.1']),
    listener([]),
    { now: [], later: [UDP] },
  ],
  [
    'A place is due at once when it has its first member',
    listener([]),
    listener(['10.0.0.1']),
    { now: [UDP], later: [] },
  ],
  ['A place is due at once when it is gone', listener(['10.0.0.1']), undefined, { now: [UDP], later: [] }],
  [
    'A new member makes no place due',
    listener(['10.0.0.1']),
    listener(['10.0.0.1', '10.0.0.2']),
    { now: [], later: [] },
  ],
  [
    'A place of SCTP is due as one of UDP',
    listener(['10.0.0.1'], { protocol: 'SCTP' }),
    listener(['10.0.0.2'], { protocol: 'SCTP' }),
    { now: [], later: [UDP.replace(/11$/, '84')] },
  ],
  [
    'A place of UDP is due when a member fails its checks',
    listener(['10.0.0.1', '10.0.0.2']),
    listener(['10.0.0.1', '10.0.0.2'], { slots: [member('10.0.0.2')], down: ['10.0.0.1:5353'] }),
    { now: [], later: [UDP] },
  ],
  [
    'A place of SCTP is not due then, because associations have checks of their own',
    listener(['10.0.0.1', '10.0.0.2'], { protocol: 'SCTP' }),
    listener(['10.0.0.1', '10.0.0.2'], {
      protocol: 'SCTP',
      slots: [member('10.0.0.2')],
      down: ['10.0.0.1:5353'],
    }),
    { now: [], later: [] },
  ],
  [
    'A place of UDP is not due when a member drains',
    listener(['10.0.0.1', '10.0.0.2']),
    listener(['10.0.0.1', '10.0.0.2'], { slots: [member('10.0.0.2')] }),
    { now: [], later: [] },
  ],
  [
    'A place of TCP that is gone is not due, because HAProxy may serve it',
    listener(['10.0.0.1'], { protocol: 'TCP' }),
    undefined,
    { now: [], later: [] },
  ],
  [
    'A place that another listener keeps is due as such',
    listener(['10.0.0.1'], { addresses: ['192.0.2.1', '192.0.2.2'] }),
    listener(['10.0.0.1']),
    { now: [UDP.replace('c0000201', 'c0000202')], later: [] },
  ],
] as const) {
  test(title, (t) => {
    t.deepEqual(dueAfter({ before, after }), due);
  });
}

test('An order names the members that keep their flows', (t) => {
  const two = listener(['10.0.0.1', '10.0.0.2']);
  t.is(orderOf(UDP, undefined), `${UDP} all`);
  t.is(orderOf(UDP, two), `${UDP} some ${ONE} ${TWO}`);
  const drains = { ...two, slots: [member('10.0.0.2')] };
  t.is(orderOf(UDP, { ...two, slots: [] }), `${UDP} few ${ONE} ${TWO}`);
  t.is(orderOf(UDP, { ...drains, slots: [two.members[1] as Member] }), `${UDP} some ${TWO} ${ONE}`);
  const down = { ...two, slots: [two.members[1] as Member], down: ['10.0.0.1:5353'] };
  t.is(orderOf(UDP, down), `${UDP} some ${TWO}`);
  t.is(orderOf(UDP, { ...down, protocol: 'SCTP' }), `${UDP} some ${TWO} ${ONE}`);
  t.is(orderOf(UDP, { ...two, down: ['10.0.0.1:5353', '10.0.0.2:5353'] }), `${UDP} some ${ONE} ${TWO}`);
});

test('A connection of TCP that is not established yet stays only with a member of new ones', (t) => {
  const two = listener(['10.0.0.1', '10.0.0.2'], { protocol: 'TCP' });
  t.is(orderOf(UDP, { ...two, slots: [two.members[1] as Member] }), `${UDP} some ${TWO}`);
  t.is(orderOf(UDP, { ...two, slots: [] }), `${UDP} few ${ONE} ${TWO}`);
});

test('The key of a place has a fixed length for each family', (t) => {
  const place = { family: 'v6', address: '2001:db8::1', protocol: 'TCP', port: 80 } as const;
  t.is(placeKey(place), '20010db8000000000000000000000001005006');
});
