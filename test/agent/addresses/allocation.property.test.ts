import test from 'ava';
import fc from 'fast-check';
import { Addresses, type AddressRequest } from '../../../agent/addresses/addresses.ts';
import type { AddressClaim } from '../../../agent/kubernetes/address-claim.ts';
import type { AddressPool } from '../../../agent/kubernetes/address-pool.ts';
import { claim, doubles, pool, request, tcp, textsOf } from '../../support/values/address-requests.ts';
import { allocate } from '../../support/values/allocate.ts';

const RELEASE_AFTER = 100;

const blocks = fc.subarray(
  ['192.0.2.0/29', '192.0.2.4-192.0.2.10', '192.0.2.20', '2001:db8::/126', '2001:db8::2-2001:db8::9'],
  { minLength: 1 },
);

function poolOf(name: string): fc.Arbitrary<AddressPool> {
  return fc
    .record({
      blocks,
      priority: fc.integer({ min: 0, max: 2 }),
      draining: fc.boolean().map((one) => one && name === 'c'),
      auto: fc.boolean().map((one) => one || name === 'a'),
      shareAcrossNamespaces: fc.boolean(),
      serviceAllocation: fc.constantFrom({}, {}, { namespaces: ['one'] }),
    })
    .map(({ blocks: given, ...more }) => pool(name, given, more));
}

const pools = fc
  .tuple(poolOf('a'), poolOf('b'), poolOf('c'))
  .chain((all) => fc.subarray(all, { minLength: 1 }));

const someAddress = fc.constantFrom('192.0.2.1', '192.0.2.5', '192.0.2.20', '203.0.113.1');

function requestOf(key: string): fc.Arbitrary<AddressRequest> {
  return fc
    .record({
      created: fc.integer({ min: 0, max: 3 }),
      families: fc.constantFrom(
        ['v4'] as const,
        ['v6'] as const,
        ['v4', 'v6'] as const,
        ['v6', 'v4'] as const,
      ),
      need: fc.constantFrom('all', 'some', 'one', 'nothing' as const),
      given: fc.option(someAddress, { nil: undefined }),
      pool: fc.constantFrom(undefined, undefined, 'a', 'c'),
      sharingKey: fc.constantFrom('', 'k', 'k', 'l'),
      ports: fc.subarray([80, 81, 443], { minLength: 1 }),
      statusIPs: fc.subarray(['192.0.2.3', '192.0.2.20', '2001:db8::3']),
    })
    .map(({ given, ports, families, ...rest }) =>
      request(key, {
        ...rest,
        families,
        ports: tcp(...ports),
        given: given !== undefined && (families as readonly string[]).includes('v4') ? [given] : [],
      }),
    );
}

const keys = ['one/a', 'one/b', 'one/c', 'two/a', 'two/b', 'two/c'];

type Step =
  | { readonly kind: 'ask'; readonly request: AddressRequest }
  | { readonly kind: 'leave'; readonly key: string }
  | { readonly kind: 'pools'; readonly pools: readonly AddressPool[] }
  | { readonly kind: 'reserve'; readonly claim: AddressClaim }
  | { readonly kind: 'unreserve' }
  | { readonly kind: 'wait'; readonly time: number };

const reservation = fc
  .record({
    address: fc.constantFrom('192.0.2.1', '192.0.2.5', '2001:db8::3'),
    for: fc.constantFrom({}, { service: 'one/a' }, { namespace: 'two' }),
  })
  .map(({ address, for: whom }) => claim('reservation', { address, reserved: true, ...whom }));

const asking = fc
  .constantFrom(...keys)
  .chain((key) => requestOf(key).map((one): Step => ({ kind: 'ask', request: one })));

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: asking },
  { weight: 3, arbitrary: fc.constantFrom(...keys).map((key): Step => ({ kind: 'leave', key })) },
  { weight: 1, arbitrary: pools.map((all): Step => ({ kind: 'pools', pools: all })) },
  { weight: 1, arbitrary: reservation.map((one): Step => ({ kind: 'reserve', claim: one })) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'unreserve' }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 150 }).map((time): Step => ({ kind: 'wait', time })) },
);

/** Carries out steps on one allocator and keeps a store of claims as a writer would. */
class History {
  readonly addresses = new Addresses();
  readonly requests = new Map<string, AddressRequest>();
  readonly store = new Map<string, AddressClaim>();
  pools: readonly AddressPool[] = [];
  now = 1_000;

  constructor(given: readonly AddressPool[]) {
    this.pools = given;
    this.addresses.update({ pools: given, leading: true, releaseAfter: RELEASE_AFTER }, this.now);
  }

  take(one: Step): void {
    switch (one.kind) {
      case 'ask':
        this.requests.set(one.request.key, one.request);
        this.#update({ requests: [[one.request.key, one.request]] });
        break;
      case 'leave':
        this.requests.delete(one.key);
        this.#update({ requests: [[one.key, undefined]] });
        break;
      case 'pools':
        this.pools = one.pools;
        this.#update({ pools: one.pools });
        break;
      case 'reserve':
        this.store.set(one.claim.name, one.claim);
        this.#update({ claims: { upserted: [one.claim] } });
        break;
      case 'unreserve':
        this.store.delete('reservation');
        this.#update({ claims: { removed: ['reservation'] } });
        break;
      case 'wait':
        this.now += one.time;
        this.#update({});
        break;
    }
  }

  #update(change: Parameters<Addresses['update']>[0]): void {
    for (const { kind, claim: one } of this.addresses.update(change, this.now).claimChanges) {
      if ((kind === 'create') === this.store.has(one.name))
        throw new Error(`${kind} of ${one.name} makes no sense`);
      if (kind === 'delete') this.store.delete(one.name);
      else this.store.set(one.name, one);
    }
  }

  assigned(): Map<string, readonly string[]> {
    return new Map([...this.addresses.assignments()].map((one) => [one.key, textsOf(one)]));
  }
}

const histories = fc.tuple(pools, fc.array(step, { maxLength: 25 }));

// Conformance: shared addresses
test('No address and no port is ever given twice, and the store holds exactly the claims', (t) => {
  fc.assert(
    fc.property(histories, ([given, steps]) => {
      const history = new History(given);
      for (const one of steps) {
        history.take(one);
        const claims = [...history.addresses.claims()];
        t.deepEqual(doubles(claims), []);
        t.deepEqual([...history.store.values()].sort(byName), claims.sort(byName));
        for (const { key, addresses } of history.addresses.assignments()) {
          for (const { address, claim: name, ports } of addresses) {
            const written = history.store.get(name);
            t.deepEqual([written?.service, written?.address, written?.ports], [key, address, ports]);
          }
        }
      }
    }),
    { numRuns: 400 },
  );
});

// Conformance: an assigned address never moves
test('An address moves only when its Service requests another one or another family', (t) => {
  fc.assert(
    fc.property(histories, ([given, steps]) => {
      const history = new History(given);
      for (const one of steps) {
        const before = history.assigned();
        history.take(one);
        for (const [key, addresses] of before) {
          const asked = history.requests.get(key);
          if (asked === undefined) continue;
          for (const address of addresses) {
            const family = address.includes(':') ? 'v6' : 'v4';
            const mayGo =
              !asked.families.includes(family) ||
              (asked.need === 'one' && addresses.length > 1) ||
              asked.given.some((wanted) => wanted.family === family && wanted.address !== address);
            t.true(mayGo || history.assigned().get(key)?.includes(address), `${key} lost ${address}`);
          }
        }
      }
    }),
    { numRuns: 400 },
  );
});

test('No Service waits while an address is free', (t) => {
  fc.assert(
    fc.property(histories, ([given, steps]) => {
      const history = new History(given);
      for (const one of steps) {
        history.take(one);
        const before = history.assigned();
        const everybody = [...history.requests];
        history.addresses.update({ requests: everybody }, history.now);
        t.deepEqual(history.assigned(), before);
      }
    }),
    { numRuns: 400 },
  );
});

// Conformance: claims are the truth, not statuses
test('A restart from the claims gives the same addresses, without a write', (t) => {
  fc.assert(
    fc.property(histories, ([given, steps]) => {
      const history = new History(given);
      for (const one of steps) history.take(one);
      const { assignments, claimChanges } = allocate({
        pools: history.pools,
        claims: [...history.store.values()],
        requests: [...history.requests.values()],
        releaseAfter: RELEASE_AFTER,
        now: history.now,
      });
      t.deepEqual(claimChanges, []);
      // The words of a Service that still waits may name who held the address when it last looked.
      for (const [key, assignment] of assignments) {
        const now = history.addresses.assignment(key);
        t.deepEqual([now?.addresses, now?.isComplete], [assignment.addresses, assignment.isComplete]);
      }
    }),
    { numRuns: 400 },
  );
});

test('Counts agree with the claims', (t) => {
  fc.assert(
    fc.property(histories, ([given, steps]) => {
      const history = new History(given);
      for (const one of steps) history.take(one);
      const fresh = new Addresses();
      fresh.update({ pools: history.pools, claims: { upserted: [...history.store.values()] } }, history.now);
      t.deepEqual(history.addresses.counts(), fresh.counts());
      for (const { v4, v6 } of fresh.counts()) {
        for (const { total, free, used, held, conflicting } of [v4, v6]) {
          t.is(free + used + held + conflicting, total);
          t.true(free >= 0n && conflicting >= 0n);
        }
      }
    }),
    { numRuns: 200 },
  );
});

const worlds = pools.chain((given) =>
  fc.record({
    given: fc.constant(given),
    requests: fc.tuple(...keys.map(requestOf)).chain((all) => fc.subarray(all)),
    claims: fc.subarray([
      claim('c1', { address: '192.0.2.1', service: 'one/a', since: '1970-01-01T00:00:01Z' }),
      claim('c2', { address: '192.0.2.1', service: 'one/b', since: '1970-01-01T00:00:01Z' }),
      claim('c3', { address: '192.0.2.5', service: 'two/a', sharingKey: 'k', ports: tcp(80) }),
      claim('c4', { address: '192.0.2.5', service: 'two/b', sharingKey: 'k', ports: tcp(80, 81) }),
      claim('c5', { address: '192.0.2.6', service: 'two/c', heldUntil: '1970-01-01T00:00:02Z' }),
      claim('c6', { address: '2001:db8::3', reserved: true, service: 'one/c' }),
      claim('c7', { address: '198.51.100.7', service: 'one/a' }),
    ]),
  }),
);

// Conformance: the same input, the same choice
test('The order of objects makes no difference', (t) => {
  fc.assert(
    fc.property(
      worlds.chain((world) =>
        fc.tuple(
          fc.constant(world),
          fc.shuffledSubarray([...world.requests], { minLength: world.requests.length }),
          fc.shuffledSubarray([...world.claims], { minLength: world.claims.length }),
          fc.shuffledSubarray([...world.given], { minLength: world.given.length }),
        ),
      ),
      ([world, requests, claims, shuffledPools]) => {
        const common = { releaseAfter: RELEASE_AFTER, now: 1_500 };
        const one = allocate({
          pools: world.given,
          claims: world.claims,
          requests: world.requests,
          ...common,
        });
        const other = allocate({ pools: shuffledPools, claims, requests, ...common });
        t.deepEqual(one.claimChanges, other.claimChanges);
        t.deepEqual(doubles(remaining(world.claims, one.claimChanges)), []);
        for (const [key, assignment] of one.assignments) t.deepEqual(assignment, other.assignments.get(key));
      },
    ),
    { numRuns: 500 },
  );
});

test('Without history, single updates and one large update give the same addresses', (t) => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(names, fc.boolean(), (all, isShared) => {
      const given = [pool('a', ['10.0.0.0/8', '2001:db8::/64'])];
      const requests = all.map((name, i) =>
        request(`default/${name}`, {
          families: ['v4', 'v6'],
          created: i,
          ports: tcp(1 + i),
          sharingKey: isShared ? `k${i % 3}` : '',
        }),
      );
      const common = { releaseAfter: RELEASE_AFTER, now: 1_000 };
      const { assignments } = allocate({ pools: given, claims: [], requests, ...common });
      const history = new History(given);
      for (const one of requests) history.take({ kind: 'ask', request: one });
      for (const [key, assignment] of assignments) t.deepEqual(history.addresses.assignment(key), assignment);
    }),
    { numRuns: 100 },
  );
});

function remaining(
  claims: readonly AddressClaim[],
  changes: readonly { readonly kind: string; readonly claim: AddressClaim }[],
): readonly AddressClaim[] {
  const byNames = new Map(claims.map((one) => [one.name, one]));
  for (const { kind, claim: one } of changes) {
    if (kind === 'delete') byNames.delete(one.name);
    else byNames.set(one.name, one);
  }
  return [...byNames.values()];
}

function byName(a: AddressClaim, b: AddressClaim): number {
  return a.name < b.name ? -1 : 1;
}
