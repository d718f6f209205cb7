import test from 'ava';
import { Addresses, type AddressRequest, type Holder } from '../../../agent/addresses/addresses.ts';
import type { AddressPool } from '../../../agent/kubernetes/address-pool.ts';
import {
  ask,
  claim,
  had,
  leading,
  leave,
  pool,
  reasons,
  request,
  tcp,
  textsOf,
} from '../../support/values/address-requests.ts';
import { allocate } from '../../support/values/allocate.ts';

const MINUTE = 60_000;
const HELD = 10 * MINUTE;

function only(addresses: Addresses, key: string): string {
  const [address = ''] = had(addresses, key);
  return address;
}

test('A Service gets an address of a pool, and a claim on all of it is to be written', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  const { changed, claimChanges } = ask(addresses, 5_000, request('default/web'));
  const address = only(addresses, 'default/web');
  t.regex(address, /^192\.0\.2\.\d+$/);
  t.deepEqual([...changed], ['default/web']);
  t.deepEqual(claimChanges, [
    {
      kind: 'create',
      claim: {
        kind: 'AddressClaim',
        name: address.replaceAll('.', '-'),
        address,
        family: 'v4',
        pool: 'a',
        service: 'default/web',
        serviceUID: 'uid-of-default.web',
        sharingKey: '',
        ports: [],
        granted: undefined,
        since: 5_000,
        heldUntil: 0,
        reserved: false,
        namespace: '',
        publicAddress: '',
      },
    },
  ]);
  t.is(addresses.assignment('default/web')?.isComplete, true);
  t.deepEqual(reasons(addresses, 'default/web'), []);
});

test('An update without a change changes nothing', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/web'));
  const { changed, claimChanges } = ask(addresses, 1, request('default/web'));
  t.is(changed.size, 0);
  t.deepEqual(claimChanges, []);
});

// Conformance: the same input, the same choice
test('The choice depends on the name of the Service and not on other Services', (t) => {
  const alone = leading([pool('a', ['10.0.0.0/8'])]);
  ask(alone, 0, request('default/web'));
  const crowd = leading([pool('a', ['10.0.0.0/8'])]);
  ask(
    crowd,
    0,
    ...Array.from({ length: 50 }, (_, i) => request(`default/other-${i}`)),
    request('default/web'),
  );
  t.is(only(crowd, 'default/web'), only(alone, 'default/web'));
});

test('A full pool leaves the youngest Service pending, which gets the next free address', (t) => {
  const addresses = leading([pool('a', ['192.0.2.1-192.0.2.2'])]);
  ask(
    addresses,
    0,
    request('default/c', { created: 3 }),
    request('default/b', { created: 2 }),
    request('default/a', { created: 1 }),
  );
  t.deepEqual([...had(addresses, 'default/a'), ...had(addresses, 'default/b')].sort(), [
    '192.0.2.1',
    '192.0.2.2',
  ]);
  t.deepEqual(had(addresses, 'default/c'), []);
  t.deepEqual(addresses.assignment('default/c')?.problems, [
    {
      object: 'Service default/c',
      reason: 'AddressPending',
      message: 'It has no IPv4 address yet: no free address in pool "a"',
    },
  ]);
  const freed = only(addresses, 'default/a');
  const { changed } = leave(addresses, MINUTE, 'default/a');
  t.deepEqual([...changed].sort(), ['default/a', 'default/c']);
  t.deepEqual(had(addresses, 'default/c'), [freed]);
});

test('Every Service that waits for a pool gets an address when there are enough', (t) => {
  const addresses = leading([pool('a', ['192.0.2.1'])]);
  const keys = Array.from({ length: 200 }, (_, i) => `default/web-${i}`);
  ask(addresses, 0, ...keys.map((key) => request(key)));
  addresses.update({ pools: [pool('a', ['192.0.2.0/24'])] }, 1);
  t.is(new Set(keys.map((key) => only(addresses, key))).size, 200);
  t.false(keys.some((key) => only(addresses, key) === ''));
});

// Conformance: a Service that is deleted and created again keeps its address
test('A Service that is deleted and created again gets its address and claim back', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/web'));
  const address = only(addresses, 'default/web');
  const gone = leave(addresses, MINUTE, 'default/web');
  t.deepEqual(
    gone.claimChanges.map(({ kind, claim: { heldUntil } }) => [kind, heldUntil]),
    [['update', MINUTE + HELD]],
  );
  const back = ask(addresses, 2 * MINUTE, request('default/web', { uid: 'another' }));
  t.is(only(addresses, 'default/web'), address);
  t.deepEqual(
    back.claimChanges.map(({ kind, claim: { heldUntil, serviceUID, since } }) => [
      kind,
      heldUntil,
      serviceUID,
      since,
    ]),
    [['update', 0, 'another', 0]],
  );
  t.is(addresses.nextExpiry(), Number.POSITIVE_INFINITY);
});

// Conformance: a Service that is deleted and created again keeps its address
test('With releaseAfter 0 an address is free at once', (t) => {
  const addresses = leading([pool('a', ['192.0.2.1'])]);
  addresses.update({ releaseAfter: 0 }, 0);
  ask(addresses, 0, request('default/a'), request('default/b', { created: 2_000 }));
  t.deepEqual(had(addresses, 'default/b'), []);
  const { claimChanges } = leave(addresses, 1, 'default/a');
  t.deepEqual(had(addresses, 'default/b'), ['192.0.2.1']);
  t.deepEqual(
    claimChanges.map(({ kind, claim: { service } }) => [kind, service]),
    [['update', 'default/b']],
  );
});

test('A Service that requests another pool does not get its held address back', (t) => {
  const pools = [pool('a', ['192.0.2.1']), pool('b', ['198.51.100.1'])];
  const addresses = leading(pools);
  ask(addresses, 0, request('default/web', { pool: 'a' }));
  leave(addresses, 1, 'default/web');
  ask(addresses, 2, request('default/web', { pool: 'b' }));
  t.deepEqual(had(addresses, 'default/web'), ['198.51.100.1']);
});

test('A Service that names an address gets it before any Service without a request', (t) => {
  const free = leading([pool('a', ['192.0.2.0/24'])]);
  ask(free, 0, request('default/any'));
  const wanted = only(free, 'default/any');
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/any'), request('default/given', { given: [wanted], created: 9_000 }));
  t.is(only(addresses, 'default/given'), wanted);
  t.not(only(addresses, 'default/any'), wanted);
  t.not(only(addresses, 'default/any'), '');
});

// Conformance: a second claimant
test('A second Service waits for a named address, and gets it when the first of its namespace is gone', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/first', { given: ['192.0.2.7'] }));
  ask(addresses, 1, request('default/second', { given: ['192.0.2.7'] }));
  t.deepEqual(had(addresses, 'default/second'), []);
  t.deepEqual(
    addresses.assignment('default/second')?.problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'AddressInUse',
        'Cannot give 192.0.2.7: Service "default/first" has it; to share it, give both the same annotation "headgate.io/address-sharing-key"',
      ],
    ],
  );
  const { changed } = leave(addresses, 2, 'default/first');
  t.deepEqual([...changed].sort(), ['default/first', 'default/second']);
  t.deepEqual(had(addresses, 'default/second'), ['192.0.2.7']);
});

test('A second Service of another namespace gets the address only after the hold', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/first', { given: ['192.0.2.7'] }));
  ask(addresses, 1, request('other/second', { given: ['192.0.2.7'] }));
  leave(addresses, 2, 'default/first');
  t.deepEqual(had(addresses, 'other/second'), []);
  addresses.update({}, 2 + HELD);
  t.deepEqual(had(addresses, 'other/second'), ['192.0.2.7']);
});

test('A Service that requests another address keeps the old one until the new one is free', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/holder', { given: ['192.0.2.8'] }));
  ask(addresses, 0, request('default/web', { given: ['192.0.2.7'] }));
  ask(addresses, 1, request('default/web', { given: ['192.0.2.8'] }));
  t.deepEqual(had(addresses, 'default/web'), ['192.0.2.7']);
  t.deepEqual(reasons(addresses, 'default/web'), ['AddressInUse']);
  leave(addresses, 2, 'default/holder');
  t.deepEqual(had(addresses, 'default/web'), ['192.0.2.8']);
  ask(addresses, 3, request('default/web', { given: ['192.0.2.7'] }));
  t.deepEqual(had(addresses, 'default/web'), ['192.0.2.7']);
});

test('Two Services can change places', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(
    addresses,
    0,
    request('default/a', { given: ['192.0.2.1'] }),
    request('default/b', { given: ['192.0.2.2'] }),
  );
  ask(
    addresses,
    1,
    request('default/b', { given: ['192.0.2.3'] }),
    request('default/a', { given: ['192.0.2.2'] }),
  );
  t.deepEqual(had(addresses, 'default/b'), ['192.0.2.3']);
  t.deepEqual(had(addresses, 'default/a'), ['192.0.2.2']);
});

test('An address outside all pools is not given', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/web', { given: ['203.0.113.1'] }));
  t.deepEqual(had(addresses, 'default/web'), []);
  t.deepEqual(reasons(addresses, 'default/web'), ['AddressNotInPool']);
});

test('Pools are used by priority, then by name; pools with auto: false only on request', (t) => {
  const pools = [
    pool('c', ['203.0.113.1']),
    pool('b', ['198.51.100.1']),
    pool('first', ['192.0.2.1'], { priority: 5 }),
    pool('hidden', ['192.0.2.99'], { priority: 9, auto: false }),
  ];
  const addresses = leading(pools);
  for (const name of ['one', 'two', 'three', 'four']) ask(addresses, 0, request(`default/${name}`));
  ask(addresses, 0, request('default/by-name', { pool: 'hidden' }));
  t.deepEqual(
    ['one', 'two', 'three', 'four', 'by-name'].map((name) => only(addresses, `default/${name}`)),
    ['192.0.2.1', '198.51.100.1', '203.0.113.1', '', '192.0.2.99'],
  );
});

// Conformance: pools for some Services
test('A pool for some namespaces and labels refuses other Services, even by name or address', (t) => {
  const rules = {
    serviceAllocation: {
      namespaces: ['prod'],
      serviceSelector: {
        matchLabels: { tier: 'front' },
        matchExpressions: [{ key: 'team', operator: 'In', values: ['x', 'y'] }],
      },
    },
  };
  const addresses = leading([pool('a', ['192.0.2.0/24'], rules)]);
  const good = { tier: 'front', team: 'x' };
  ask(
    addresses,
    0,
    request('prod/good', { labels: good }),
    request('prod/bad', { labels: { tier: 'front' } }),
    request('test/good', { labels: good }),
    request('test/named', { labels: good, pool: 'a' }),
    request('test/given', { labels: good, given: ['192.0.2.9'] }),
  );
  t.is(had(addresses, 'prod/good').length, 1);
  const refused = ['prod/bad', 'test/good', 'test/named', 'test/given'];
  t.deepEqual(
    refused.map((key) => [...had(addresses, key), ...reasons(addresses, key)]),
    [['AddressPending'], ['AddressPending'], ['AddressNotAllowed'], ['AddressNotAllowed']],
  );
  t.deepEqual(
    addresses.assignment('test/named')?.problems.map(({ message }) => message),
    ['It has no IPv4 address yet: pool "a" is not for namespace "test"'],
  );
});

// Conformance: an assigned address never moves
test('A draining pool gives no new address and keeps the given ones', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/old'));
  const old = had(addresses, 'default/old');
  addresses.update({ pools: [pool('a', ['192.0.2.0/24'], { draining: true })] }, 1);
  ask(addresses, 2, request('default/new'), request('default/given', { given: ['192.0.2.9'] }));
  t.deepEqual(had(addresses, 'default/old'), old);
  t.deepEqual(had(addresses, 'default/new'), []);
  t.deepEqual(reasons(addresses, 'default/given'), ['AddressNotAllowed']);
  leave(addresses, 3, 'default/old');
  ask(addresses, 4, request('default/old'));
  t.deepEqual(had(addresses, 'default/old'), [], 'who comes again has left');
});

for (const [what, pools] of [
  ['is gone', []],
  ['has shrunk', [pool('a', ['192.0.2.0/30'])]],
  ['is for others now', [pool('a', ['192.0.2.0/24'], { serviceAllocation: { namespaces: ['x'] } })]],
  [
    'is overtaken by one of higher priority',
    [pool('a', ['192.0.2.0/24']), pool('b', ['198.51.100.0/24'], { priority: 1 })],
  ],
] as [string, AddressPool[]][]) {
  test(`A Service keeps its address when its pool ${what}`, (t) => {
    const addresses = leading([pool('a', ['192.0.2.0/24'])]);
    ask(addresses, 0, request('default/web', { given: ['192.0.2.77'] }));
    ask(addresses, 1, request('default/web'));
    const { claimChanges } = addresses.update({ pools }, 2);
    t.deepEqual(had(addresses, 'default/web'), ['192.0.2.77']);
    t.deepEqual(claimChanges, []);
    const isOut = !what.startsWith('is overtaken');
    t.deepEqual(reasons(addresses, 'default/web'), isOut ? ['AddressOutOfPool'] : []);
    t.is(addresses.assignment('default/web')?.addresses[0]?.outOfPool !== '', isOut);
    t.true(addresses.assignment('default/web')?.isComplete);
  });
}

// Conformance: shared addresses
test('Services with the same key share an address as long as their ports are disjoint', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  const shared = { sharingKey: 'k' };
  ask(addresses, 0, request('default/http', { ...shared, ports: tcp(80) }));
  ask(addresses, 1, request('default/https', { ...shared, ports: tcp(443) }));
  ask(addresses, 2, request('default/dns', { ...shared, ports: [{ protocol: 'UDP', port: 443 }] }));
  ask(addresses, 3, request('default/http-2', { ...shared, ports: tcp(80, 8080) }));
  ask(addresses, 4, request('default/alone', { ports: tcp(81) }));
  ask(addresses, 5, request('default/other-key', { sharingKey: 'other', ports: tcp(82) }));
  const address = only(addresses, 'default/http');
  t.is(only(addresses, 'default/https'), address);
  t.is(only(addresses, 'default/dns'), address);
  const others = ['http-2', 'alone', 'other-key'].map((name) => only(addresses, `default/${name}`));
  t.is(new Set([address, ...others]).size, 4);
  t.false(others.includes(''));
  t.deepEqual(
    addresses.claimsOn(address).map(({ name, ports }) => [name, ports.length]),
    ['http', 'https', 'dns'].map((name) => [`${address.replaceAll('.', '-')}.${name}.default`, 1]),
  );
});

// Conformance: shared addresses
test('An address is shared within one namespace, and across namespaces if the pool allows it', (t) => {
  const shared = (key: string, port: number) => request(key, { sharingKey: 'k', ports: tcp(port) });
  const apart = leading([pool('a', ['192.0.2.0/24'])]);
  ask(apart, 0, shared('one/web', 80), shared('two/web', 81));
  t.not(only(apart, 'one/web'), only(apart, 'two/web'));
  const together = leading([pool('a', ['192.0.2.0/24'], { shareAcrossNamespaces: true })]);
  ask(together, 0, shared('one/web', 80), shared('two/web', 81));
  t.is(only(together, 'one/web'), only(together, 'two/web'));
  t.not(only(together, 'one/web'), '');
});

test('One address is enough for Services with one key', (t) => {
  const one = pool('machine', ['192.0.2.1'], { shareAcrossNamespaces: true });
  const addresses = leading([one]);
  const ports = [80, 443, 8080, 9090];
  ask(
    addresses,
    0,
    ...ports.map((port) => request(`ns-${port}/web`, { sharingKey: 'all', ports: tcp(port) })),
  );
  for (const port of ports) t.deepEqual(had(addresses, `ns-${port}/web`), ['192.0.2.1']);
  ask(addresses, 1, request('late/web', { sharingKey: 'all', ports: tcp(443) }));
  t.deepEqual(reasons(addresses, 'late/web'), ['AddressPending']);
  leave(addresses, 2, 'ns-443/web');
  addresses.update({}, 2 + HELD);
  t.deepEqual(had(addresses, 'late/web'), ['192.0.2.1']);
});

test('A Service can name an address that others share by the same key', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  const given = { given: ['192.0.2.5'], sharingKey: 'k' };
  ask(addresses, 0, request('default/a', { ...given, ports: tcp(80) }));
  ask(addresses, 1, request('default/b', { ...given, ports: tcp(443) }));
  ask(addresses, 2, request('default/c', { ...given, ports: tcp(443, 444) }));
  ask(addresses, 3, request('default/whole', { given: ['192.0.2.5'] }));
  t.deepEqual(had(addresses, 'default/b'), ['192.0.2.5']);
  t.deepEqual(
    ['c', 'whole'].map((name) =>
      addresses.assignment(`default/${name}`)?.problems.map(({ message }) => message),
    ),
    [
      ['Cannot give 192.0.2.5: Service "default/b" has one of the ports'],
      ['Cannot give 192.0.2.5: Service "default/a" has it with the sharing key "k"'],
    ],
  );
  leave(addresses, 4, 'default/b');
  t.deepEqual(had(addresses, 'default/c'), ['192.0.2.5']);
});

test('A port that another Service has is refused alone, and given when it is free', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  const shared = { sharingKey: 'k' };
  ask(addresses, 0, request('default/a', { ...shared, ports: tcp(80) }));
  ask(addresses, 1, request('default/b', { ...shared, ports: tcp(443) }));
  ask(addresses, 2, request('default/b', { ...shared, ports: tcp(80, 443) }));
  t.is(only(addresses, 'default/b'), only(addresses, 'default/a'));
  t.deepEqual(addresses.assignment('default/b')?.addresses[0]?.ports, tcp(443));
  t.deepEqual(
    addresses.assignment('default/b')?.problems.map(({ reason, port }) => [reason, port?.port]),
    [['AddressInUse', 80]],
  );
  ask(addresses, 3, request('default/a', { ...shared, ports: tcp(81) }));
  t.deepEqual(addresses.assignment('default/b')?.addresses[0]?.ports, tcp(80, 443));
  t.deepEqual(reasons(addresses, 'default/b'), []);
});

test('A Service that waits for a full pool gets the address that is kept for one that is gone', (t) => {
  const addresses = leading([pool('a', ['192.0.2.7'])]);
  const said = () => addresses.assignment('other/b')?.problems.map(({ message }) => message);
  ask(addresses, 0, request('default/a'));
  ask(addresses, 1, request('other/b'));
  t.deepEqual(said(), ['It has no IPv4 address yet: no free address in pool "a"']);
  leave(addresses, 2, 'default/a');
  t.deepEqual(had(addresses, 'other/b'), ['192.0.2.7']);
});

test('Of the addresses that are kept, the one that is kept for the longest time is given out first, if none is free', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0-192.0.2.2'])]);
  const [a, b, c] = ['default/a', 'default/b', 'default/c'] as const;
  ask(addresses, 0, request(a), request(b));
  const [first, second] = [only(addresses, a), only(addresses, b)];
  leave(addresses, 1, b);
  leave(addresses, 2, a);
  ask(addresses, 3, request(c));
  t.false([first, second].includes(only(addresses, c)), 'A free one comes first');
  ask(addresses, 4, request('other/d'));
  t.is(only(addresses, 'other/d'), second);
  ask(addresses, 5, request(a));
  t.is(only(addresses, a), first, 'The other one is still kept');
});

test('A namespace has a hundred kept addresses at most', (t) => {
  const addresses = leading([pool('a', ['10.0.0.0/16'])]);
  for (let n = 0; n < 150; n++) {
    ask(addresses, n, request(`greedy/s${n}`));
    leave(addresses, n, `greedy/s${n}`);
  }
  ask(addresses, 200, request('default/a'));
  leave(addresses, 200, 'default/a');
  const held = [...addresses.claims()].map(({ service }) => service);
  t.is(held.filter((service) => service.startsWith('greedy/')).length, 100);
  t.true(held.includes('greedy/s149') && !held.includes('greedy/s49'), 'The first ones are released');
  t.true(held.includes('default/a'));
});

const NODES = new Map([['192.0.2.0', 'Node n1']]);

/** `192.0.2.0` is a Node's, and `192.0.2.2` an endpoint's. */
function besideOthers(...pools: readonly AddressPool[]): Addresses {
  const holders: Readonly<Record<string, Holder>> = {
    '192.0.2.0': { name: 'Node n1', givesWay: false },
    '192.0.2.2': { name: 'an endpoint of Service b/x', givesWay: true },
  };
  const addresses = new Addresses(
    (address) => holders[address],
    () => NODES,
  );
  addresses.update({ pools, leading: true }, 0);
  return addresses;
}

test('An address of a Node is not given out, and a problem of the pool names it', (t) => {
  const addresses = besideOthers(pool('a', ['192.0.2.0-192.0.2.1']));
  ask(addresses, 1, request('default/a'));
  ask(addresses, 2, request('default/b'));
  t.is(only(addresses, 'default/a'), '192.0.2.1');
  t.deepEqual(reasons(addresses, 'default/b'), ['AddressPending']);
  t.deepEqual(addresses.poolProblems(), [
    {
      object: 'AddressPool a',
      reason: 'AddressInUse',
      message: '192.0.2.0 is not given out, because it is the address of Node n1',
    },
  ]);
  addresses.update({ pools: [pool('a', ['192.0.2.1'])] }, 3);
  t.deepEqual(addresses.poolProblems(), []);
});

test('Addresses of Nodes are not free, and the pool has its problem before a Service asks for an address', (t) => {
  let nodes: ReadonlyMap<string, string> = new Map();
  const addresses = new Addresses(
    (address) => {
      const name = nodes.get(address);
      return name === undefined ? undefined : { name, givesWay: false };
    },
    () => nodes,
  );
  const block = pool('a', ['192.0.2.0/29', '2001:db8::/126']);
  addresses.update({ pools: [block], leading: true }, 0);
  ask(addresses, 1, request('default/a', { given: ['192.0.2.4'] }));
  const counts = () => addresses.counts().map(({ v4, v6 }) => [Object.values(v4), Object.values(v6)]);
  t.deepEqual(counts(), [
    [
      [8n, 7n, 1n, 0n, 0n],
      [4n, 4n, 0n, 0n, 0n],
    ],
  ]);
  t.deepEqual(addresses.poolProblems(), []);
  // The third one is outside of the pool; a Service already has the fourth.
  nodes = new Map([
    ['192.0.2.1', 'Node n1'],
    ['2001:db8::3', 'Node n1'],
    ['198.51.100.1', 'Node n2'],
    ['192.0.2.4', 'Node n3'],
  ]);
  addresses.update({ pools: [block] }, 2);
  t.deepEqual(counts(), [
    [
      [8n, 6n, 1n, 0n, 1n],
      [4n, 3n, 0n, 0n, 1n],
    ],
  ]);
  t.deepEqual(
    addresses.poolProblems().map(({ reason, message }) => [reason, message]),
    [
      [
        'AddressInUse',
        '192.0.2.1 is not given out, because it is the address of Node n1; the pool has addresses of Nodes besides it: 2',
      ],
    ],
  );
  ask(addresses, 3, ...[1, 2, 3, 4, 5, 6, 7].map((number) => request(`default/s${number}`)));
  t.deepEqual(counts()[0]?.[0], [8n, 0n, 7n, 0n, 1n], 'An exhausted pool has no free address');
  nodes = new Map();
  addresses.update({ pools: [block] }, 4);
  t.deepEqual(addresses.poolProblems(), []);
});

test('A Service that names the address of a Node does not get it', (t) => {
  const addresses = besideOthers(pool('a', ['192.0.2.0/24']));
  ask(addresses, 1, request('default/a', { given: ['192.0.2.0'] }));
  t.deepEqual(had(addresses, 'default/a'), []);
  t.is(
    addresses.assignment('default/a')?.problems[0]?.message,
    'Cannot give 192.0.2.0: it is the address of Node n1',
  );
});

test('An address of an endpoint is the last one that is given out, so that no EndpointSlice takes a pool from others', (t) => {
  const addresses = besideOthers(pool('a', ['192.0.2.2'], { priority: 1 }), pool('b', ['192.0.2.1']));
  ask(addresses, 1, request('default/a'));
  t.is(only(addresses, 'default/a'), '192.0.2.1', 'Another pool comes before it');
  const [problem] = addresses.poolProblems();
  t.is(
    problem?.message,
    '192.0.2.2 is given out only if no other one is free, because it is the address of an endpoint of Service b/x',
  );
  ask(addresses, 2, request('default/b'));
  t.is(only(addresses, 'default/b'), '192.0.2.2');
});

/** Services of the namespace `default`, each with the address that it names. */
function settledAt(places: Readonly<Record<string, string>>, more: object = {}) {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  const at = (name: string, address: string) =>
    ask(addresses, 1, request(`default/${name}`, { given: [address], ...more }));
  for (const [name, address] of Object.entries(places)) at(name, address);
  const all = () => Object.keys(places).map((name) => had(addresses, `default/${name}`)[0]);
  return { addresses, at, all };
}

test("Two Services that name each other's addresses exchange them", (t) => {
  const { addresses, at, all } = settledAt({ a: '192.0.2.1', b: '192.0.2.2' });
  at('a', '192.0.2.2');
  t.deepEqual(all(), ['192.0.2.1', '192.0.2.2'], 'The first one waits');
  t.deepEqual(reasons(addresses, 'default/a'), ['AddressInUse']);
  const { changed } = at('b', '192.0.2.1');
  t.deepEqual(all(), ['192.0.2.2', '192.0.2.1']);
  t.deepEqual([...changed].sort(), ['default/a', 'default/b']);
  t.deepEqual(reasons(addresses, 'default/a'), []);
  t.is([...addresses.claims()].length, 2, 'Nothing is held');
});

test('Services exchange addresses in a ring, and a further Service that waits for one of them stays as it is', (t) => {
  const { at, all } = settledAt({ a: '192.0.2.1', b: '192.0.2.2', c: '192.0.2.3', d: '192.0.2.4' });
  at('d', '192.0.2.1');
  at('a', '192.0.2.2');
  at('b', '192.0.2.3');
  t.deepEqual(all(), ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']);
  at('c', '192.0.2.1');
  t.deepEqual(all(), ['192.0.2.2', '192.0.2.3', '192.0.2.1', '192.0.2.4']);
});

test('A Service exchanges its address with all that share the other one', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  const shared = (name: string, port: number, address: string) =>
    ask(addresses, 1, request(`default/${name}`, { sharingKey: 'k', ports: tcp(port), given: [address] }));
  shared('x', 80, '192.0.2.1');
  shared('y', 443, '192.0.2.1');
  ask(addresses, 1, request('default/z', { given: ['192.0.2.2'] }));
  ask(addresses, 1, request('default/z', { given: ['192.0.2.1'] }));
  shared('x', 80, '192.0.2.2');
  t.deepEqual(had(addresses, 'default/z'), ['192.0.2.2'], 'The other one still has it');
  shared('y', 443, '192.0.2.2');
  t.deepEqual(
    ['x', 'y', 'z'].map((name) => had(addresses, `default/${name}`)[0]),
    ['192.0.2.2', '192.0.2.2', '192.0.2.1'],
  );
});

test('The problem of a held port names the Service that had it', (t) => {
  const addresses = leading([pool('a', ['192.0.2.7'])]);
  const shared = { sharingKey: 'k' };
  ask(addresses, 0, request('default/a', { ...shared, ports: tcp(80) }));
  ask(addresses, 1, request('default/b', { ...shared, ports: tcp(443) }));
  ask(addresses, 2, request('default/b', { ...shared, ports: tcp(80, 443) }));
  const said = () => addresses.assignment('default/b')?.problems.map(({ message }) => message);
  t.deepEqual(said(), ['Cannot have 192.0.2.7 TCP port 80: Service "default/a" has it']);
  leave(addresses, 3, 'default/a');
  const until = new Date(3 + HELD).toISOString();
  t.deepEqual(said(), [
    `Cannot have 192.0.2.7 TCP port 80: it is kept for Service "default/a", which had it, until ${until}`,
  ]);
});

test('A Service that drops its sharing key keeps its ports until the others have gone', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/a', { sharingKey: 'k', ports: tcp(80) }));
  ask(addresses, 1, request('default/b', { sharingKey: 'k', ports: tcp(443) }));
  const address = only(addresses, 'default/b');
  ask(addresses, 2, request('default/b', { ports: tcp(443) }));
  t.is(only(addresses, 'default/b'), address);
  const said = () => addresses.assignment('default/b')?.problems.map(({ message }) => message);
  t.deepEqual(said(), [`Cannot have ${address} alone: Service "default/a" has it with the sharing key "k"`]);
  t.deepEqual(reasons(addresses, 'default/b'), ['AddressInUse']);
  leave(addresses, 3, 'default/a');
  const until = new Date(3 + HELD).toISOString();
  t.deepEqual(said(), [
    `Cannot have ${address} alone: it is kept for Service "default/a", which had it, until ${until}`,
  ]);
  addresses.update({}, 3 + HELD);
  t.deepEqual(addresses.assignment('default/b')?.addresses[0]?.ports, []);
  t.deepEqual(reasons(addresses, 'default/b'), []);
});

test('Dual stack takes one address of each family, of one pool if possible', (t) => {
  const pools = [
    pool('only-v6', ['2001:db8:1::/64'], { priority: 1 }),
    pool('both', ['192.0.2.0/24', '2001:db8:2::/64']),
  ];
  const addresses = leading(pools);
  ask(addresses, 0, request('default/web', { families: ['v4', 'v6'] }));
  const [v4, v6] = addresses.assignment('default/web')?.addresses ?? [];
  t.deepEqual([v4?.family, v4?.pool, v6?.family, v6?.pool], ['v4', 'both', 'v6', 'both']);
});

// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test('PreferDualStack accepts one family and gets the other later; RequireDualStack waits', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(
    addresses,
    0,
    request('default/prefers', { families: ['v6', 'v4'], need: 'some' }),
    request('default/requires', { families: ['v4', 'v6'], need: 'all' }),
  );
  const [v4 = ''] = had(addresses, 'default/prefers');
  t.is(addresses.assignment('default/prefers')?.isComplete, true);
  t.deepEqual(reasons(addresses, 'default/prefers'), []);
  t.deepEqual(had(addresses, 'default/requires'), []);
  t.deepEqual(reasons(addresses, 'default/requires'), ['AddressPending']);
  addresses.update({ pools: [pool('a', ['192.0.2.0/24', '2001:db8::/64'])] }, 1);
  t.is(had(addresses, 'default/prefers')[1], v4);
  t.is(had(addresses, 'default/prefers').length, 2);
  t.is(had(addresses, 'default/requires').length, 2);
});

// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test('A Service that gives up a family keeps the other one', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24', '2001:db8::/64'])]);
  ask(addresses, 0, request('default/web', { families: ['v4', 'v6'] }));
  const both = had(addresses, 'default/web');
  ask(addresses, 1, request('default/web', { families: ['v6'] }));
  t.deepEqual(had(addresses, 'default/web'), both.slice(1));
  ask(addresses, 2, request('default/web', { families: ['v4', 'v6'] }));
  t.deepEqual(had(addresses, 'default/web'), both);
});

// Conformance: claims are the truth, not statuses
test('A free address of the status that is in a pool is adopted before new ones are given', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(
    addresses,
    0,
    request('default/older', { created: 1, statusIPs: ['192.0.2.40'] }),
    request('default/younger', { created: 2, statusIPs: ['192.0.2.40'] }),
    request('default/given', { created: 0, given: ['192.0.2.40'] }),
    request('default/elsewhere', { statusIPs: ['203.0.113.9'] }),
  );
  t.is(only(addresses, 'default/older'), '192.0.2.40');
  t.not(only(addresses, 'default/younger'), '192.0.2.40');
  t.regex(only(addresses, 'default/elsewhere'), /^192\.0\.2\./);
  t.deepEqual(reasons(addresses, 'default/given'), ['AddressInUse']);
});

// Conformance: shared addresses
test('Services that show one address share it without a key, if each has ports of its own, until one is alone', (t) => {
  const shown = { given: ['192.0.2.40'], statusIPs: ['192.0.2.40'] };
  const older = request('one/older', { created: 1, ...shown });
  const younger = request('two/younger', { created: 2, ...shown, ports: tcp(443) });
  const clashing = request('one/clashing', { created: 3, ...shown, ports: tcp(443, 8443) });
  const addresses = new Addresses();
  addresses.update({ leading: true, requests: [older, younger, clashing].map((one) => [one.key, one]) }, 0);
  const portsOf = (key: string) =>
    addresses.assignment(key)?.addresses.map(({ ports }) => ports.map(({ port }) => port));

  addresses.update({ pools: [pool('a', ['192.0.2.0/24'])] }, 1);
  t.deepEqual([portsOf('one/older'), portsOf('two/younger'), portsOf('one/clashing')], [[[80]], [[443]], []]);
  t.deepEqual(reasons(addresses, 'one/older'), []);
  t.deepEqual(reasons(addresses, 'two/younger'), []);

  const late = { created: 0, given: ['192.0.2.40'] };
  ask(addresses, 2, request('one/late', { ...late, ports: tcp(81) }));
  ask(addresses, 2, request('one/keyed', { ...late, ports: tcp(82), sharingKey: 'k' }));
  t.deepEqual(reasons(addresses, 'one/late'), ['AddressInUse']);
  t.deepEqual(reasons(addresses, 'one/keyed'), ['AddressInUse']);

  ask(addresses, 3, { ...older, ports: tcp(80, 443, 8080) });
  t.deepEqual(portsOf('one/older'), [[80, 8080]], 'It may have ports that no other Service has');
  leave(addresses, 4, 'one/older', 'one/clashing', 'one/late', 'one/keyed');
  t.deepEqual(portsOf('two/younger'), [[443]], 'The ports of the other one are kept for it');
  addresses.update({}, 4 + HELD);
  t.deepEqual(portsOf('two/younger'), [[]], 'All of it');
});

test('A Service keeps its whole address whatever another status shows', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/owner', { statusIPs: ['192.0.2.40'] }));
  const other = { created: 0, given: ['192.0.2.40'], statusIPs: ['192.0.2.40'], ports: tcp(443) };
  ask(addresses, 1, request('default/other', other));
  t.deepEqual(addresses.assignment('default/owner')?.addresses[0]?.ports, []);
  t.deepEqual(reasons(addresses, 'default/other'), ['AddressInUse']);
});

// Conformance: a Service that is deleted and created again keeps its address
test('A reservation keeps its address from all Services', (t) => {
  const reservation = claim('router', { address: '192.0.2.1', reserved: true });
  const addresses = leading([pool('a', ['192.0.2.1'])], [reservation]);
  ask(addresses, 0, request('default/web'), request('default/given', { given: ['192.0.2.1'] }));
  t.deepEqual(had(addresses, 'default/web'), []);
  t.deepEqual(
    addresses.assignment('default/given')?.problems.map(({ message }) => message),
    ['Cannot give 192.0.2.1: it is reserved (AddressClaim router)'],
  );
  const { changed } = addresses.update({ claims: { removed: ['router'] } }, 1);
  t.deepEqual([...changed], ['default/given']);
});

test('A reservation gives its Service the address, whatever the rules of the pool', (t) => {
  const reservation = claim('for-web', { address: '192.0.2.1', reserved: true, service: 'default/web' });
  const addresses = leading([pool('a', ['192.0.2.0/24'], { auto: false, draining: true })], [reservation]);
  const { claimChanges } = ask(addresses, 0, request('default/web'), request('default/other'));
  t.deepEqual(had(addresses, 'default/web'), ['192.0.2.1']);
  t.deepEqual(had(addresses, 'default/other'), []);
  t.deepEqual(
    claimChanges.map(({ kind, claim: { name } }) => [kind, name]),
    [['create', '192-0-2-1']],
  );
});

test('A reservation for a namespace permits the address to its Services on request', (t) => {
  const reservation = claim('192-0-2-1', { address: '192.0.2.1', reserved: true, namespace: 'prod' });
  const addresses = leading([pool('a', ['192.0.2.1'])], [reservation]);
  ask(addresses, 0, request('prod/any'), request('test/given', { given: ['192.0.2.1'] }));
  t.deepEqual([...had(addresses, 'prod/any'), ...had(addresses, 'test/given')], []);
  const { claimChanges } = ask(addresses, 1, request('prod/given', { given: ['192.0.2.1'] }));
  t.deepEqual(had(addresses, 'prod/given'), ['192.0.2.1']);
  t.deepEqual(
    claimChanges.map(({ claim: { name } }) => name),
    ['192-0-2-1.given.prod'],
  );
});

// Conformance: claims are the truth, not statuses
test('At the start claims count before statuses, and statuses before requests', (t) => {
  const { assignments, claimChanges } = allocate({
    pools: [pool('a', ['192.0.2.0/24'])],
    claims: [
      claim('192-0-2-5', { address: '192.0.2.5', service: 'default/web', since: '2026-01-01T00:00:00Z' }),
    ],
    requests: [
      request('default/given', { given: ['192.0.2.5'], created: 0 }),
      request('default/status', { statusIPs: ['192.0.2.5'], created: 0 }),
      request('default/web', { created: 5 }),
    ],
    releaseAfter: HELD,
    now: Date.parse('2026-02-01T00:00:00Z'),
  });
  t.deepEqual(textsOf(assignments.get('default/web')), ['192.0.2.5']);
  t.deepEqual(textsOf(assignments.get('default/given')), []);
  t.deepEqual(claimChanges.map(({ kind, claim: { service } }) => [kind, service]).sort(), [
    ['create', 'default/status'],
    ['update', 'default/web'],
  ]);
});

test('A claim whose Service disappeared without a leader is held from then on', (t) => {
  const addresses = new Addresses();
  const claims = [
    claim('192-0-2-5', { address: '192.0.2.5', service: 'default/gone' }),
    claim('192-0-2-6', {
      address: '192.0.2.6',
      service: 'default/long-gone',
      heldUntil: '1970-01-01T00:00:01Z',
    }),
  ];
  const { claimChanges } = addresses.update(
    { pools: [], claims: { upserted: claims }, leading: true },
    5_000,
  );
  t.deepEqual(
    claimChanges.map(({ kind, claim: { name, heldUntil } }) => [kind, name, heldUntil]),
    [
      ['update', '192-0-2-5', 5_000 + HELD],
      ['delete', '192-0-2-6', 1_000],
    ],
  );
});

test('The older of two claims on one address counts, and the other Service gets another address', (t) => {
  const claims = [
    claim('x', { address: '192.0.2.5', service: 'default/young', since: '2026-01-02T00:00:00Z' }),
    claim('y', { address: '192.0.2.5', service: 'default/old', since: '2026-01-01T00:00:00Z' }),
  ];
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  addresses.update(
    {
      claims: { upserted: claims },
      requests: ['old', 'young'].map((name) => [`default/${name}`, request(`default/${name}`)]),
    },
    1,
  );
  t.deepEqual(had(addresses, 'default/old'), ['192.0.2.5']);
  t.is(had(addresses, 'default/young').length, 1);
  t.not(only(addresses, 'default/young'), '192.0.2.5');
  t.is(addresses.claim('x'), undefined);
});

test('A host that follows reports no address outside pools before it has read them', (t) => {
  const leader = leading([pool('a', ['192.0.2.0/24'])]);
  const web = request('default/web');
  const { claimChanges } = leader.update({ requests: [['default/web', web]] }, 0);
  const follower = new Addresses();
  const upserted = claimChanges.map(({ claim: one }) => one);
  follower.update({ requests: [['default/web', web]], claims: { upserted } }, 0);
  t.is(only(follower, 'default/web'), only(leader, 'default/web'));
  t.deepEqual(reasons(follower, 'default/web'), []);
  follower.update({ pools: [pool('other', ['198.51.100.0/24'])] }, 1);
  t.deepEqual(reasons(follower, 'default/web'), ['AddressOutOfPool']);
});

test('A host that follows decides nothing, and continues where the leader stopped', (t) => {
  const pools = [pool('a', ['192.0.2.0/24'])];
  const leader = leading(pools);
  const follower = new Addresses();
  const requests = ['default/a', 'default/b'].map((key) => request(key));
  const { claimChanges } = ask(leader, 0, ...requests);
  const seen = follower.update({ pools, requests: requests.map((one) => [one.key, one] as const) }, 0);
  t.deepEqual(seen.claimChanges, []);
  t.deepEqual(reasons(follower, 'default/a'), ['AddressPending']);
  const followed = follower.update({ claims: { upserted: claimChanges.map(({ claim: one }) => one) } }, 1);
  t.deepEqual([...followed.changed].sort(), ['default/a', 'default/b']);
  t.deepEqual(followed.claimChanges, []);
  t.deepEqual([...follower.assignments()], [...leader.assignments()]);
  const taken = follower.update({ leading: true }, 2);
  t.deepEqual([[...taken.changed], taken.claimChanges], [[], []]);
});

test('A host that follows statuses has the addresses that they show', (t) => {
  const pools = [pool('a', ['192.0.2.0/24'])];
  const stale = [
    claim('192-0-2-7', { address: '192.0.2.7', service: 'default/gone', heldUntil: '2026-11-23T23:00:00Z' }),
    claim('192-0-2-8', { address: '192.0.2.8', service: 'default/web' }),
    claim('192-0-2-9', { address: '192.0.2.9', service: 'default/silent' }),
  ];
  const follower = new Addresses();
  const requests = [
    request('default/web', { statusIPs: ['192.0.2.7'] }),
    request('default/other', { statusIPs: ['192.0.2.8'] }),
    request('default/silent'),
    request('default/new'),
    request('default/outside', { statusIPs: ['203.0.113.9'] }),
  ].map((one) => [one.key, one] as const);
  const { claimChanges } = follower.update(
    { pools, requests, claims: { upserted: stale }, byStatus: true },
    0,
  );
  t.is(only(follower, 'default/web'), '192.0.2.7');
  t.is(only(follower, 'default/other'), '192.0.2.8');
  t.is(
    only(follower, 'default/silent'),
    '192.0.2.9',
    'Until its status shows something it keeps what it had',
  );
  t.deepEqual(had(follower, 'default/new'), []);
  t.deepEqual(had(follower, 'default/outside'), []);
  t.deepEqual(reasons(follower, 'default/new'), ['AddressPending']);
  t.true(
    claimChanges.some(
      ({ claim: { service, address } }) => `${service} ${address}` === 'default/web 192.0.2.7',
    ),
  );

  // It becomes the leader: no Service moves, and the waiting Service gets an address.
  const taken = follower.update({ leading: true, byStatus: true }, 1);
  t.deepEqual([...taken.changed].sort(), ['default/new', 'default/outside']);
  // From now on it knows better than a status, which comes later.
  ask(follower, 2, request('default/web', { given: ['192.0.2.77'], statusIPs: ['192.0.2.7'] }));
  ask(
    follower,
    3,
    request('default/web', { given: ['192.0.2.77'], statusIPs: ['192.0.2.7'], labels: { a: 'b' } }),
  );
  t.is(only(follower, 'default/web'), '192.0.2.77');
});

test('Two hosts with the same objects agree by the statuses alone', (t) => {
  const pools = [pool('a', ['192.0.2.0/29'])];
  const [leader, follower] = [new Addresses(), new Addresses()];
  const keyed = { sharingKey: 'k', created: 5 };
  const wishes = [
    request('default/a', { created: 1 }),
    request('default/b', { created: 1 }),
    request('default/dns', { ...keyed, ports: tcp(53) }),
    request('default/web', { ...keyed, ports: tcp(443) }),
  ];
  const entries = (all: readonly AddressRequest[]) => all.map((one) => [one.key, one] as const);
  leader.update({ pools, leading: true, byStatus: true, requests: entries(wishes) }, 0);
  // The one that follows had decided otherwise while it was alone, of objects that came in another order.
  follower.update({ pools, leading: true, requests: entries(wishes.slice(1)) }, 0);
  follower.update({ requests: entries(wishes.slice(0, 1)) }, 1);
  const shown = wishes.map((one) => ({
    ...one,
    statusIPs: had(leader, one.key).map((address) => ({ address, family: 'v4' as const })),
  }));
  follower.update({ leading: false, byStatus: true, requests: entries(shown) }, 2);
  for (const { key } of wishes) t.deepEqual(had(follower, key), had(leader, key), key);
  t.is(only(follower, 'default/dns'), only(follower, 'default/web'));
});

test("A manifest's Service has no status: each host decides for itself, around what the statuses show", (t) => {
  const pools = [pool('a', ['192.0.2.1-192.0.2.2'])];
  const follower = new Addresses();
  const local = request('default/local', { isLocal: true, created: 1, given: ['192.0.2.1'] });
  const free = request('default/free', { isLocal: true, created: 2 });
  const requests = [local, free].map((one) => [one.key, one] as const);
  follower.update({ pools, requests, byStatus: true }, 0);
  t.is(only(follower, 'default/local'), '192.0.2.1');
  t.is(only(follower, 'default/free'), '192.0.2.2');
  const web = request('default/web', { statusIPs: ['192.0.2.2'] });
  follower.update({ requests: [[web.key, web]], byStatus: true }, 1);
  t.is(only(follower, 'default/web'), '192.0.2.2');
  t.deepEqual(had(follower, 'default/free'), []);
  follower.update({ requests: [[local.key, undefined]], byStatus: true }, 2);
  follower.update({ byStatus: true }, 2 + HELD);
  t.is(
    only(follower, 'default/free'),
    '192.0.2.1',
    'What is kept for one that is gone is free after a while',
  );
});

test('A deleted claim is written again while it is in use, and released if it is held', (t) => {
  const addresses = leading([pool('a', ['192.0.2.5'])]);
  ask(addresses, 0, request('default/web'));
  const again = addresses.update({ claims: { removed: ['192-0-2-5'] } }, 1);
  t.deepEqual(
    again.claimChanges.map(({ kind, claim: { name } }) => [kind, name]),
    [['create', '192-0-2-5']],
  );
  leave(addresses, 2, 'default/web');
  const free = addresses.update({ claims: { removed: ['192-0-2-5'] } }, 3);
  t.deepEqual(free.claimChanges, []);
  t.is(addresses.claim('192-0-2-5'), undefined);
});

test('A claim that another writer changes is written back', (t) => {
  const addresses = leading([pool('a', ['192.0.2.5'])]);
  ask(addresses, 0, request('default/web'));
  const changed = claim('192-0-2-5', { address: '192.0.2.5', service: 'default/thief' });
  const { claimChanges } = addresses.update({ claims: { upserted: [changed] } }, 1);
  t.deepEqual(
    claimChanges.map(({ kind, claim: { service } }) => [kind, service]),
    [['update', 'default/web']],
  );
  t.deepEqual(had(addresses, 'default/web'), ['192.0.2.5']);
});

test("The store's confirmation of a claim changes nothing", (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  const { claimChanges } = ask(addresses, 0, request('default/web'));
  const echo = addresses.update(
    { claims: { upserted: claimChanges.map(({ claim: one }) => ({ ...one })) } },
    1,
  );
  t.deepEqual([[...echo.changed], echo.claimChanges], [[], []]);
});

// Conformance: counts
test('Counts add up, and a /64 counts as what it is', (t) => {
  const addresses = leading(
    [
      pool('a', ['192.0.2.0/29', '2001:db8::/64'], { priority: 1, avoidBuggyIPs: true }),
      pool('b', ['192.0.2.4-192.0.2.11']),
    ],
    [claim('r', { address: '192.0.2.2', reserved: true })],
  );
  ask(
    addresses,
    0,
    request('default/a', { given: ['192.0.2.1'] }),
    request('default/b', { given: ['192.0.2.9'] }),
  );
  ask(addresses, 0, request('default/c', { families: ['v6'] }));
  leave(addresses, 1, 'default/b');
  const counts = addresses
    .counts()
    .map(({ pool: { name }, v4, v6 }) => [name, Object.values(v4), Object.values(v6)]);
  t.deepEqual(counts, [
    ['a', [6n, 4n, 1n, 1n, 0n], [1n << 64n, (1n << 64n) - 1n, 1n, 0n, 0n]],
    ['b', [8n, 4n, 0n, 1n, 3n], [0n, 0n, 0n, 0n, 0n]],
  ]);
  addresses.update({ pools: [pool('b', ['192.0.2.0/29'])] }, 2);
  const [after] = addresses.counts();
  t.deepEqual(Object.values(after?.v4 ?? {}), [8n, 6n, 1n, 1n, 0n]);
});

test('A Service that requests only impossible addresses keeps what it has', (t) => {
  const addresses = leading([pool('a', ['192.0.2.0/24'])]);
  ask(addresses, 0, request('default/web'));
  const before = had(addresses, 'default/web');
  ask(addresses, 1, request('default/web', { families: ['v4', 'v6'], need: 'nothing' }));
  t.deepEqual(had(addresses, 'default/web'), before);
});
