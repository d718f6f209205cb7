import test from 'ava';
import fc from 'fast-check';
import { PoolIndex } from '../../../agent/addresses/pool-index.ts';
import { whyNotAllowed, whyNothingNew } from '../../../agent/addresses/pool-rules.ts';
import { readPools } from '../../../agent/addresses/read-pools.ts';
import { addressNumber, addressText, parseBlock, rangeText } from '../../../agent/base/ip-range.ts';
import { matches, type Selector } from '../../../agent/kubernetes/label-selector.ts';
import { pool } from '../../support/values/address-requests.ts';

test('readPools() reads every key and fills in the defaults', (t) => {
  const { pools, errors } = readPools([
    { name: 'a', blocks: ['192.0.2.0/30'] },
    {
      name: 'b.example',
      blocks: ['192.0.2.0/30', '198.51.100.1 - 198.51.100.2', '2001:DB8::1'],
      priority: -3,
      auto: false,
      draining: true,
      avoidBuggyIPs: true,
      shareAcrossNamespaces: true,
      serviceAllocation: {
        namespaces: ['prod'],
        serviceSelector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists' }] },
      },
    },
  ]);
  t.deepEqual(errors, []);
  t.deepEqual(
    pools.map(({ blocks }) => blocks.map(rangeText)),
    [['192.0.2.0-192.0.2.3'], ['192.0.2.1-192.0.2.2', '198.51.100.1-198.51.100.2', '2001:db8::1']],
  );
  const [plain, full] = pools.map(({ blocks: _, ...rest }) => rest);
  const common = {
    kind: 'AddressPool',
    source: 'settings',
    uid: '',
    generation: 0,
    ready: undefined,
    announce: '',
    bgp: undefined,
  } as const;
  t.deepEqual(plain, {
    ...common,
    key: 'a',
    name: 'a',
    priority: 0,
    auto: true,
    draining: false,
    shareAcrossNamespaces: false,
    namespaces: [],
    selector: { matchLabels: {}, matchExpressions: [] },
    allowed: undefined,
    public: undefined,
  });
  t.deepEqual(full, {
    ...common,
    key: 'b.example',
    name: 'b.example',
    priority: -3,
    auto: false,
    draining: true,
    shareAcrossNamespaces: true,
    namespaces: ['prod'],
    allowed: undefined,
    public: undefined,
    selector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists', values: [] }] },
  });
});

test('readPools() accepts an empty setting', (t) => {
  for (const none of [undefined, null, []]) t.deepEqual(readPools(none), { pools: [], errors: [] });
});

const NOT_A_BLOCK =
  'is not a CIDR without host bits (192.0.2.0/24), a range (192.0.2.10-192.0.2.20) or an address, of unicast addresses';

for (const [value, error] of [
  ['nonsense', '"nonsense" is not a list of pools'],
  [['nonsense'], 'pools[0]: "nonsense" is not a mapping'],
  [[{ blocks: ['192.0.2.1'] }], 'pools[0]: name: missing, every pool has one'],
  [
    [{ name: 'A', blocks: ['192.0.2.1'] }],
    'pools[0]: name: "A" is not a DNS name (a-z, 0-9, "-" and ".", at most 253 characters)',
  ],
  [[{ name: 'a' }], 'pool "a": blocks: missing, must be a list'],
  [[{ name: 'a', blocks: [] }], 'pool "a": blocks: [] is not a list of at least one block'],
  [[{ name: 'a', blocks: ['192.0.2.1'], prio: 1 }], 'pool "a": prio: Unknown key'],
  [
    [{ name: 'a', blocks: ['192.0.2.1'], avoidBuggyIps: true, auto: 1 }],
    'pool "a": avoidBuggyIps: Unknown key, the nearest is "avoidBuggyIPs"',
  ],
  [
    [{ name: 'a', blocks: ['192.0.2.1'], serviceAllocation: { namespace: ['x'] } }],
    'pool "a": serviceAllocation.namespace: Unknown key, the nearest is "namespaces"',
  ],
  [
    [{ name: 'a', blocks: ['192.0.2.1'], priority: 1.5 }],
    'pool "a": priority: 1.5 is not a whole number from -1000 to 1000',
  ],
  [
    [
      {
        name: 'a',
        blocks: ['192.0.2.1'],
        serviceAllocation: { serviceSelector: { matchExpressions: [{ key: 'x', operator: 'In' }] } },
      },
    ],
    'pool "a": serviceAllocation.serviceSelector.matchExpressions[0].values: missing, In needs at least one',
  ],
] as const) {
  test(`readPools() refuses ${error}`, (t) => {
    t.is(readPools(value).errors[0], error);
    t.deepEqual(readPools(value).pools, []);
  });
}

test('readPools() refuses the second of two pools with one name', (t) => {
  const { pools, errors } = readPools([
    { name: 'a', blocks: ['192.0.2.1'] },
    { name: 'a', blocks: ['192.0.2.2'] },
  ]);
  t.deepEqual(errors, ['pool "a": there are two of this name']);
  t.is(pools.length, 1);
});

for (const block of [
  '',
  '192.0.2.1/24',
  '192.0.2.0/33',
  '192.0.2.0/',
  '192.0.2.9-192.0.2.1',
  '192.0.2.1-nonsense',
  'nonsense-192.0.2.1',
  '192.0.2.1-',
  '192.0.2.1-192.0.2.2-192.0.2.3',
  '192.0.2.1-2001:db8::1',
  '010.0.0.1',
  '0.0.0.0/0',
  '0.0.0.0',
  '224.0.0.0/4',
  '223.255.255.255-224.0.0.0',
  '255.255.255.255',
  '::/0',
  '::ffff:192.0.2.0/120',
  'fe80::/64',
  'ff02::1',
]) {
  test(`A pool cannot have the block "${block}"`, (t) => {
    const { errors } = readPools([{ name: 'a', blocks: [block] }]);
    t.deepEqual(errors, [`pool "a": blocks[0]: "${block}" ${NOT_A_BLOCK}`]);
  });
}

test('A pool can have loopback addresses and whole IPv6 networks', (t) => {
  const { errors } = readPools([{ name: 'a', blocks: ['127.0.0.0/8', '::1', '2000::/3', 'fd00::/8'] }]);
  t.deepEqual(errors, []);
});

test('avoidBuggyIPs takes the ends of IPv4 CIDRs only, and leaves a /31 and a /32 whole', (t) => {
  const blocks = [
    '192.0.2.0/24',
    '198.51.100.0/31',
    '198.51.100.7/32',
    '203.0.113.0-203.0.113.255',
    '2001:db8::/120',
  ];
  t.deepEqual(pool('a', blocks, { avoidBuggyIPs: true }).blocks.map(rangeText), [
    '192.0.2.1-192.0.2.254',
    '198.51.100.0-198.51.100.1',
    '198.51.100.7',
    '203.0.113.0-203.0.113.255',
    '2001:db8::-2001:db8::ff',
  ]);
});

test('addressText() reverses addressNumber()', (t) => {
  const v4 = fc.bigInt({ min: 0n, max: (1n << 32n) - 1n });
  const v6 = fc.bigInt({ min: 1n << 64n, max: (1n << 128n) - 1n });
  fc.assert(fc.property(v4, (number) => t.is(addressNumber(addressText(number, 'v4')), number)));
  fc.assert(fc.property(v6, (number) => t.is(addressNumber(addressText(number, 'v6')), number)));
  for (const address of [
    '::',
    '::1',
    '2001:db8::',
    '2001:db8::1:0:0:1',
    '1:2:3:4:5:6:7:8',
    '255.255.255.255',
  ])
    t.is(addressText(addressNumber(address), address.includes(':') ? 'v6' : 'v4'), address);
});

test('A block reads its own text', (t) => {
  for (const text of ['192.0.2.1', '192.0.2.1-192.0.2.9', '2001:db8::1-2001:db8::ff']) {
    const parsed = parseBlock(text);
    t.is(parsed && rangeText(parsed.range), text);
  }
});

test('Overlapping pools are both reported, and the addresses belong to the first by priority, then by name', (t) => {
  const index = new PoolIndex([
    pool('b', ['192.0.2.0/24']),
    pool('a', ['192.0.2.128/25', '198.51.100.0/24']),
    pool('c', ['192.0.2.0/26', '203.0.113.1'], { priority: 1 }),
  ]);
  t.deepEqual(
    index.all.map(({ name }) => name),
    ['c', 'a', 'b'],
  );
  t.deepEqual(
    ['192.0.2.1', '192.0.2.64', '192.0.2.127', '192.0.2.128', '203.0.113.1', '203.0.113.2'].map(
      (address) => index.ownerOf(address)?.name,
    ),
    ['c', 'b', 'b', 'a', 'c', undefined],
  );
  t.deepEqual(
    index.all.map((one) => [index.size(one, 'v4'), index.total(one, 'v4')]),
    [
      [65n, 65n],
      [384n, 384n],
      [64n, 256n],
    ],
  );
  t.deepEqual(
    index.problems.map(({ object, message }) => `${object}: ${message}`),
    [
      'AddressPool c: Overlaps AddressPool b in 192.0.2.0-192.0.2.63: these addresses belong to c',
      'AddressPool b: Overlaps AddressPool c in 192.0.2.0-192.0.2.63: these addresses belong to c',
      'AddressPool a: Overlaps AddressPool b in 192.0.2.128-192.0.2.255: these addresses belong to a',
      'AddressPool b: Overlaps AddressPool a in 192.0.2.128-192.0.2.255: these addresses belong to a',
    ],
  );
});

test('A pool of the settings replaces one of the API with the same name', (t) => {
  const settings = pool('a', ['192.0.2.1']);
  const index = new PoolIndex([{ ...pool('a', ['192.0.2.2']), source: 'api' }, settings]);
  t.deepEqual(index.all, [settings]);
  t.deepEqual(
    index.problems.map(({ reason }) => reason),
    ['DuplicateObject'],
  );
});

const span = fc
  .tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 60 }))
  .map(([a, b]) => `192.0.2.${Math.min(a, b)}-192.0.2.${Math.max(a, b)}`);

test('probe() yields every address of a pool exactly once, wherever it starts, and no other', (t) => {
  const pools = fc.array(fc.array(span, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(pools, fc.bigInt({ min: 0n, max: 1n << 128n }), (given, hash) => {
      const all = given.map((blocks, i) => pool(`p${i}`, blocks));
      const index = new PoolIndex(all);
      const seen: string[] = [];
      for (const one of all) {
        const probed = [...index.probe(one, 'v4', hash)].map((number) => addressText(number, 'v4'));
        t.is(BigInt(probed.length), index.size(one, 'v4'));
        for (const address of probed) t.is(index.ownerOf(address), one);
        seen.push(...probed);
      }
      t.is(new Set(seen).size, seen.length);
      const held = new Set<string>();
      for (const { range } of given.flat().flatMap((block) => parseBlock(block) ?? [])) {
        for (let number = range.first; number <= range.last; number++) held.add(addressText(number, 'v4'));
      }
      t.deepEqual([...seen].sort(), [...held].sort());
    }),
    { numRuns: 300 },
  );
});

test('A huge pool takes no more time than a small one', (t) => {
  const huge = pool('a', ['2000::/3', '10.0.0.0/8']);
  const index = new PoolIndex([huge]);
  const [first] = index.probe(huge, 'v6', 1n << 100n);
  t.is(index.size(huge, 'v6'), 1n << 125n);
  t.is(first, (1n << 125n) + (1n << 100n));
});

function selector(given: Partial<Selector>): Selector {
  return { matchLabels: {}, matchExpressions: [], ...given };
}

test('matches() follows the rules of Kubernetes for label selectors', (t) => {
  const labels = { app: 'web', tier: '' };
  const expression = (
    key: string,
    operator: Selector['matchExpressions'][number]['operator'],
    ...values: string[]
  ) => matches(selector({ matchExpressions: [{ key, operator, values }] }), labels);
  t.true(matches(selector({}), {}));
  t.true(matches(selector({ matchLabels: { app: 'web', tier: '' } }), labels));
  t.false(matches(selector({ matchLabels: { app: 'api' } }), labels));
  t.false(matches(selector({ matchLabels: { toString: 'x' } }), labels));
  t.deepEqual(
    [
      expression('app', 'In', 'api', 'web'),
      expression('app', 'NotIn', 'web'),
      expression('none', 'In', 'web'),
      expression('none', 'NotIn', 'web'),
      expression('tier', 'Exists'),
      expression('tier', 'DoesNotExist'),
      expression('toString', 'DoesNotExist'),
    ],
    [true, false, false, true, true, false, true],
  );
});

test('A pool that drains or has auto: false refuses only new addresses without a request', (t) => {
  const asker = {
    key: 'default/web',
    namespace: 'default',
    labels: {},
    namespaceLabels: undefined,
    pool: undefined,
    ports: [],
  };
  const draining = pool('a', ['192.0.2.1'], { draining: true });
  const hidden = pool('a', ['192.0.2.1'], { auto: false });
  t.deepEqual(
    [
      whyNotAllowed(draining, asker),
      whyNothingNew(draining, { ...asker, pool: 'a' }),
      whyNotAllowed(hidden, asker),
      whyNothingNew(hidden, asker),
      whyNothingNew(hidden, { ...asker, pool: 'a' }),
      whyNotAllowed(hidden, { ...asker, pool: 'b' }),
    ],
    [
      undefined,
      'is draining',
      undefined,
      'gives addresses on request only',
      undefined,
      'is not the one that the Service asks for, "b"',
    ],
  );
});
