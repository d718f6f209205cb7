import test from 'ava';
import { vrrp } from '../../../agent/settings/vrrp.ts';
import type { StandingReason } from '../../../agent/vips/announcer.ts';
import { loweredBy } from '../../../agent/vips/vrrp.ts';

const GOOD = {
  interface: 'eth0',
  address: '192.0.2.11',
  peers: ['192.0.2.12'],
  virtualRouterId: 51,
  anchors: ['192.0.2.1', '2001:0db8::1'],
};

function errorsOf(raw: unknown): readonly string[] {
  const reading = vrrp().read(raw, '/');
  return 'errors' in reading ? reading.errors : [];
}

test('vrrp adds defaults and makes addresses canonical', (t) => {
  t.deepEqual(vrrp().read(GOOD, '/'), {
    value: {
      interface: 'eth0',
      address: '192.0.2.11',
      peers: ['192.0.2.12'],
      advertInterval: 200,
      instances: [{ virtualRouterId: 51, priority: 200, anchors: ['192.0.2.1', '2001:db8::1'] }],
    },
  });
  t.deepEqual(vrrp().read('', '/'), { value: undefined });
});

const refused: readonly (readonly [raw: unknown, error: RegExp])[] = [
  ['eth0', /^"eth0" is not a mapping with interface/],
  ['{a: [', /is not a mapping/],
  [[GOOD], /is not a mapping/],
  [{ ...GOOD, adress: 'x' }, /^adress: Unknown key, the nearest is "address"$/],
  [{ ...GOOD, foo: 'x' }, /^foo: Unknown key$/],
  [{ ...GOOD, interface: 'eth0 {' }, /^interface: "eth0 \{" is not the name of a network interface$/],
  [{ ...GOOD, interface: 'a-name-that-is-too-long' }, /is not the name/],
  [{ ...GOOD, address: '192.0.2.11/24' }, /^address: "192.0.2.11\/24" is not an IP address$/],
  [{ ...GOOD, peers: [] }, /^peers: VRRP needs at least one other host/],
  [{ ...GOOD, peers: ['fd00::2'] }, /^peers: "fd00::2" is not of the family/],
  [{ ...GOOD, peers: ['192.0.2.11'] }, /^peers: "192.0.2.11" is this host's own address$/],
  [{ ...GOOD, virtualRouterId: 256 }, /^virtualRouterId: 256 is not a whole number from 1 to 255$/],
  [{ ...GOOD, virtualRouterId: undefined }, /^virtualRouterId: missing/],
  [{ ...GOOD, priority: 100 }, /^priority: 100 is not a whole number from 200 to 250$/],
  [{ ...GOOD, advertInterval: '20ms' }, /^advertInterval: "20ms" is not a duration/],
  [{ ...GOOD, advertInterval: '105ms' }, /in tens of milliseconds$/],
  [{ ...GOOD, anchors: [] }, /^anchors: The first anchor of 51 must be of the family/],
  [{ ...GOOD, anchors: ['fd00::1'] }, /^anchors: The first anchor of 51 must be of the family/],
  [
    { ...GOOD, anchors: Array.from({ length: 33 }, (_, at) => `192.0.2.${at + 50}`) },
    /51 has 33 anchors: at most 32 are allowed/,
  ],
  [{ ...GOOD, anchors: ['192.0.2.12'] }, /^"192.0.2.12" is used twice$/],
  [{ ...GOOD, instances: [] }, /are keys of each instance if there are instances/],
];

for (const [raw, error] of refused)
  test(`vrrp refuses ${JSON.stringify(raw)}`, (t) => {
    const errors = errorsOf(raw);
    t.is(errors.length, 1);
    t.regex(errors[0] ?? '', error);
  });

test('vrrp refuses instances with equal virtualRouterIds or unknown keys', (t) => {
  const { virtualRouterId, anchors, ...common } = GOOD;
  const instances = [
    { virtualRouterId, anchors },
    { virtualRouterId, anchors: ['192.0.2.2'] },
  ];
  t.deepEqual(errorsOf({ ...common, instances }), ['virtualRouterId: 51, 51 are not all different']);
  const other = [
    { virtualRouterId, anchors },
    { virtualRouterId: 52, anchors: ['192.0.2.2'], priorty: 1 },
  ];
  t.deepEqual(errorsOf({ ...common, instances: other }), [
    'instances[1].priorty: Unknown key, the nearest is "priority"',
  ]);
});

test('Reasons that lower a host outweigh any priority, and never make it 0', (t) => {
  const ranks: readonly (readonly StandingReason[])[] = [
    ['haproxy', 'maintenance'],
    ['maintenance', 'catching-up'],
    ['catching-up'],
    [],
  ];
  const spans = ranks.map((reasons) => [200 - loweredBy(reasons), 250 - loweredBy(reasons)] as const);
  spans.reduce(([, below], [lowest, highest]) => {
    t.true(lowest > below, `${lowest} is above ${below}`);
    return [lowest, highest];
  });
  t.true((spans[0]?.[0] ?? 0) >= 1);
});
