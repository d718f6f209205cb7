import test from 'ava';
import type { MemberFact, Outcome, Plan } from '../../../agent/dataplane/dataplane.ts';
import { Landing, type LandingOptions, type LandingSettings } from '../../../agent/dataplane/landing.ts';
import type { AffinityClient, LandingDataplane, MainDataplane } from '../../../agent/dataplane/moves.ts';
import { Places } from '../../../agent/dataplane/places.ts';
import type { DataplaneStatus, ListenerTraffic } from '../../../agent/dataplane/status.ts';
import type { LoadBalancer, Problem } from '../../../agent/model/load-balancer.ts';
import { FakeClock, settled } from '../../support/basics/fake-clock.ts';
import { endpoint, service, slice } from '../../support/values/build.ts';
import { dataplaneStatus } from '../../support/values/dataplane-status.ts';
import { gatewayOf, poolOf } from '../../support/values/routes.ts';
import { loadBalancerOf, translated } from '../../support/values/translated.ts';

const REST = 60_000;

/** A load balancer of this name; `members` are checked if `isMonitored`. */
function loadBalancer(
  name: string,
  { members = 1, isMonitored = false, address = '192.0.2.10' } = {},
): LoadBalancer {
  const endpoints = Array.from({ length: members }, (_, at) =>
    endpoint(`10.0.${Math.floor(at / 250)}.${(at % 250) + 1}`),
  );
  const annotations: Readonly<Record<string, string>> = isMonitored
    ? { 'headgate.io/health-monitor': 'tcp' }
    : {};
  return loadBalancerOf(
    translated([
      service({ name, annotations, loadBalancerIP: address }),
      slice({ serviceName: name, endpoints }),
    ]),
    `default/${name}`,
  );
}

/** A dataplane that changes what it serves by reloads alone, and only when the test says so. */
class TestHaproxy implements MainDataplane<LandingSettings>, LandingDataplane<LandingSettings> {
  readonly part: ReadonlyMap<string, LoadBalancer>;
  readonly replan: (keys: Iterable<string>) => void;
  readonly seen: string[] = [];
  running: Map<string, LoadBalancer> | undefined;
  isDue = false;
  reloads = 0;
  /** Keys that it refuses. */
  readonly refuses = new Set<string>();
  knowsChecks = true;
  wasThere = false;

  constructor(part: ReadonlyMap<string, LoadBalancer>, replan: (keys: Iterable<string>) => void) {
    this.part = part;
    this.replan = replan;
  }

  /** Starts or reloads it with what it should serve now. */
  reload(): void {
    const before = this.running;
    this.running = new Map([...this.part].filter(([key]) => !this.refuses.has(key)));
    if (before !== undefined) this.reloads++;
    this.isDue = false;
    this.replan([...this.running.keys(), ...(before?.keys() ?? [])]);
  }

  prepare(): void {}

  async start(): Promise<void> {
    this.seen.push('start');
  }

  configure({ landing }: LandingSettings): void {
    this.seen.push(`configure ${landing}`);
  }

  async close(): Promise<void> {}

  async processes(): Promise<readonly number[]> {
    return [];
  }

  async stop(): Promise<void> {}

  plan(keys: Iterable<string>): readonly Plan[] {
    if (this.running === undefined) return [];
    return Array.from(keys, (key) => ({ key, effort: this.#lacks(key) ? 'reload' : 'none' }));
  }

  async apply(plans: readonly Plan[]): Promise<Outcome> {
    const pending = plans.filter(({ effort }) => effort === 'reload').map(({ key }) => key);
    if (pending.length > 0) this.isDue = true;
    return { acknowledged: new Set(), pending: new Set(pending), lost: undefined };
  }

  served(key: string): LoadBalancer | 'pending' | undefined {
    return this.running === undefined || this.#lacks(key) ? 'pending' : this.running.get(key);
  }

  serves(listener: string): boolean {
    return [...(this.running?.values() ?? [])].some((each) =>
      each.listeners.some(({ name }) => name === listener),
    );
  }

  continues(listener: string): boolean {
    return this.serves(listener);
  }

  servesElsewhere(key: string, addresses: readonly string[] = []): boolean {
    if (this.running === undefined) return true;
    const own = this.running.get(key)?.listeners.flatMap((listener) => listener.addresses) ?? [];
    return own.some((address) => !addresses.includes(address));
  }

  members(): ReadonlyMap<string, MemberFact> {
    const isDown = this.knowsChecks ? false : undefined;
    return new Map([['10.0.0.1:8080', { state: 'ready', weight: 16, isDown, cause: '' }]]);
  }

  problemsOf({ key }: LoadBalancer): readonly Problem[] {
    if (!this.refuses.has(key)) return [];
    return [{ object: key, reason: 'ConfigurationRejected', message: 'refused' }];
  }

  status(): DataplaneStatus {
    return dataplaneStatus({
      serving: this.running !== undefined,
      reloadPending: this.isDue ? ['listener-added'] : [],
    });
  }

  async liveness() {
    return { control: '', listeners: '' };
  }

  async families() {
    return [];
  }

  traffic(): readonly ListenerTraffic[] {
    return [];
  }

  async stats() {
    return undefined;
  }

  loads() {
    return [];
  }

  async runningListeners(): Promise<readonly string[]> {
    return [...(this.running?.values() ?? [])].flatMap(({ listeners }) => listeners.map(({ name }) => name));
  }

  async keptListeners(): Promise<readonly string[]> {
    return this.wasThere ? this.runningListeners() : [];
  }

  async affinity(keys: Iterable<string>) {
    return Array.from(keys, (listener) => ({ listener, address: '192.0.2.7', memberId: 7 }));
  }

  async remember(clients: readonly AffinityClient[]): Promise<void> {
    this.seen.push(`remember ${clients.map(({ listener }) => listener).join()}`);
  }

  async withdraw(keys: Iterable<string>): Promise<void> {
    this.seen.push(`withdraw ${[...keys].join()}`);
  }

  #lacks(key: string): boolean {
    return !this.refuses.has(key) && this.part.get(key) !== this.running?.get(key);
  }
}

function landingOf(
  parts: Omit<LandingOptions<LandingSettings>, 'engine' | 'settings' | 'onAway'>,
  settings: Partial<LandingSettings> = {},
): Landing<LandingSettings> {
  return new Landing({
    ...parts,
    engine: 'haproxy',
    settings: { landing: true, landingRest: REST, ...settings },
    onAway: () => undefined,
  });
}

/** A main dataplane that serves `first`, a landing that does not run yet, and the loop that plans for both. */
async function setUp(settings: Partial<LandingSettings> = {}, first: readonly LoadBalancer[] = []) {
  const clock = new FakeClock();
  const desired = new Map(first.map((each) => [each.key, each]));
  const places = new Places(desired);
  const due = new Set<string>();
  const replan = (keys: Iterable<string>): void => {
    for (const key of keys) due.add(key);
  };
  const main = new TestHaproxy(places.main, replan);
  const landing = new TestHaproxy(places.landing, replan);
  const both = landingOf({ desired, places, main, landing, replan, clock }, settings);
  main.reload();
  await both.start();
  /** Plans and applies everything that is due. */
  const loop = async (): Promise<Outcome | undefined> => {
    let outcome: Outcome | undefined;
    for (let turns = 0; due.size > 0; turns++) {
      if (turns === 20) throw new Error('The loop does not come to rest');
      const keys = [...due];
      due.clear();
      outcome = await both.apply(both.plan(keys));
      await settled();
    }
    return outcome;
  };
  await loop();
  return {
    clock,
    desired,
    main,
    landing,
    both,
    loop,
    /** The value replaces one of its key. */
    set: async (value: LoadBalancer): Promise<Outcome | undefined> => {
      desired.set(value.key, value);
      replan([value.key]);
      return loop();
    },
    remove: async (key: string): Promise<void> => {
      desired.delete(key);
      replan([key]);
      await loop();
    },
    /** Starts or reloads those that have to, until nothing is due. */
    reload: async (...which: readonly TestHaproxy[]): Promise<void> => {
      const isToReload = ({ isDue, running }: TestHaproxy): boolean => isDue || running === undefined;
      while (which.some(isToReload)) {
        for (const each of which) if (isToReload(each)) each.reload();
        await loop();
      }
    },
    advance: async (milliseconds: number): Promise<void> => {
      for (let passed = 0; passed < milliseconds; passed += 1_000) {
        await clock.advance(1_000);
        await loop();
      }
    },
  };
}

const web = loadBalancer('web');
const shop = loadBalancer('shop');
const api = loadBalancer('api');

test('A new load balancer is served by the landing, and the main dataplane is not reloaded', async (t) => {
  const { main, landing, both, set, loop } = await setUp({}, [web]);
  const outcome = await set(shop);
  t.true(outcome?.pending.has(shop.key));
  t.deepEqual(landing.seen, ['start']);
  landing.reload();
  await loop();
  t.is(both.served(shop.key), shop);
  t.false(main.isDue);
  t.is(main.reloads, 0);
  t.deepEqual([both.status().landed, both.served(web.key)], [1, web]);
  const [listener] = shop.listeners;
  t.true(both.serves(listener?.name ?? ''));
  t.false(main.serves(listener?.name ?? ''));
});

test('A new load balancer without a listener to serve goes to the main dataplane', async (t) => {
  const { main, both, set } = await setUp({}, [web]);
  const kernel = shop.listeners.map((listener) => ({ ...listener, engine: 'kernel' as const }));
  await set({ ...shop, listeners: kernel });
  t.true(main.isDue);
  t.is(both.status().landed, 0);
});

for (const part of [poolOf('shop', ['10.0.0.1:80']), gatewayOf({ address: '192.0.2.20', port: 80 }, [])])
  test(`A new load balancer with a part in routes goes to the main dataplane: ${part.key}`, async (t) => {
    const { main, both, set } = await setUp({}, [web]);
    await set(part);
    t.true(main.isDue);
    t.is(both.status().landed, 0);
  });

test('Load balancers move together when nothing has landed for a while, and the landing lets go last', async (t) => {
  const { main, landing, both, set, loop, reload, advance } = await setUp({}, [web]);
  await set(shop);
  landing.reload();
  await loop();
  await advance(REST - 2_000);
  await set(api);
  await reload(landing);
  await advance(REST - 2_000);
  t.false(main.isDue);
  await advance(2_000);
  t.true(main.isDue);
  t.is(both.served(api.key), api, 'it is served all the time');
  await advance(5_000);
  t.false(landing.isDue, 'the landing does not let go before the main dataplane serves');
  await reload(main);
  t.is(main.reloads, 1);
  t.deepEqual(main.seen, ['start', `remember ${shop.key},${api.key}`]);
  await advance(2_000);
  t.deepEqual(landing.seen, ['start', `withdraw ${shop.key},${api.key}`]);
  t.true(landing.isDue);
  await reload(landing);
  t.deepEqual([...(landing.running ?? [])], []);
  t.deepEqual([both.served(shop.key), both.status().landed], [shop, 0]);
});

test('Load balancers that land all the time move after ten rests', async (t) => {
  const { main, set, loop, landing, reload, advance } = await setUp({ landingRest: 5_000 });
  await set(loadBalancer('n0'));
  landing.reload();
  await loop();
  for (let n = 1; n <= 15; n++) {
    await advance(3_000);
    await set(loadBalancer(`n${n}`));
    await reload(landing);
  }
  t.false(main.isDue);
  await advance(6_000);
  t.true(main.isDue);
});

test('A move waits until the main dataplane knows which members are down, for ten seconds at most', async (t) => {
  const { main, landing, set, loop, reload, advance } = await setUp({ landingRest: 2_000 });
  await set(loadBalancer('checked', { isMonitored: true }));
  landing.reload();
  await loop();
  main.knowsChecks = false;
  await advance(3_000);
  await reload(main);
  await advance(5_000);
  t.deepEqual(landing.seen, ['start']);
  main.knowsChecks = true;
  await advance(1_000);
  t.deepEqual(landing.seen, ['start', 'withdraw default/checked']);
  main.knowsChecks = false;
  await reload(landing);
  await set(loadBalancer('silent', { isMonitored: true }));
  await reload(landing);
  await advance(3_000);
  await reload(main);
  await advance(13_000);
  t.is(landing.seen.at(-1), 'withdraw default/silent');
});

test('If the landing does not serve, its load balancers go to the main dataplane, and nothing lands until it does', async (t) => {
  const { main, landing, both, set, reload, advance, loop } = await setUp();
  await set(shop);
  await advance(4_000);
  t.true(main.isDue);
  await reload(main);
  t.is(main.served(shop.key), shop);
  await set(api);
  t.true(main.isDue);
  await reload(main);
  t.is(both.served(api.key), api);
  landing.reload();
  await loop();
  await advance(2_000);
  await set(web);
  t.false(main.isDue);
  await reload(landing);
  t.is(both.served(web.key), web);
});

test('What the landing refuses goes to the main dataplane, and does not land again until it changes', async (t) => {
  const { main, landing, both, set, loop, reload, advance } = await setUp();
  landing.refuses.add(shop.key);
  main.refuses.add(shop.key);
  await set(shop);
  landing.reload();
  await loop();
  await advance(3_000);
  await reload(main, landing);
  await advance(3_000);
  t.is(both.status().landed, 0);
  t.deepEqual(
    both.problemsOf(shop).map(({ reason }) => reason),
    ['ConfigurationRejected'],
  );
  await advance(10_000);
  t.is(both.status().landed, 0, 'it does not land again');
  landing.refuses.clear();
  main.refuses.clear();
  await set(loadBalancer('shop', { members: 2 }));
  t.is(both.status().landed, 1);
});

test('Without room in the landing a new load balancer and all in the landing go to the main dataplane together', async (t) => {
  const { main, landing, both, set, loop, reload, advance } = await setUp();
  await set(shop);
  landing.reload();
  await loop();
  await set(loadBalancer('large', { members: 1_100 }));
  t.true(main.isDue);
  t.is(both.status().landed, 1);
  await reload(main);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([both.status().landed, main.reloads], [0, 1]);
  for (let n = 0; n < 40; n++) await set(loadBalancer(`many-${n}`));
  t.deepEqual([both.status().landed, main.isDue], [40, false]);
  await set(loadBalancer('many-40'));
  t.true(main.isDue);
});

test('Many new load balancers at once go to the main dataplane', async (t) => {
  const { desired, main, both } = await setUp();
  const many = Array.from({ length: 41 }, (_, n) => loadBalancer(`n${n}`));
  for (const each of many) desired.set(each.key, each);
  await both.apply(both.plan(many.map(({ key }) => key)));
  t.true(main.isDue);
  t.is(both.status().landed, 0);
});

test('With landing: false everything is in the main dataplane, also what had landed before', async (t) => {
  const without = await setUp({ landing: false });
  await without.set(shop);
  t.true(without.main.isDue);
  t.deepEqual(without.landing.seen, []);
  const { main, landing, both, set, loop, reload, advance } = await setUp();
  await set(shop);
  landing.reload();
  await loop();
  both.configure({ landing: false, landingRest: REST });
  await loop();
  t.true(main.isDue);
  await reload(main);
  await advance(2_000);
  t.is(both.status().landed, 0);
});

test('A load balancer that lands can change and go there', async (t) => {
  const { main, landing, both, set, remove, loop, reload, advance } = await setUp();
  await set(shop);
  landing.reload();
  await loop();
  const changed = loadBalancer('shop', { members: 3 });
  await set(changed);
  await reload(landing);
  t.is(both.served(shop.key), changed);
  await remove(shop.key);
  t.true(both.servesElsewhere(shop.key));
  await reload(landing);
  await advance(2_000);
  t.deepEqual(
    [both.served(shop.key), both.servesElsewhere(shop.key), both.status().landed, main.reloads],
    [undefined, false, 0, 0],
  );
});

test('A landing that never serves does not keep a load balancer that is gone', async (t) => {
  const { both, main, set, remove, reload, advance } = await setUp({}, [web]);
  t.true(both.servesElsewhere(web.key));
  await set(shop);
  t.true(both.servesElsewhere(shop.key), 'it may be served by the landing');
  await advance(4_000);
  await reload(main);
  await advance(2_000);
  await remove(shop.key);
  await remove(web.key);
  await reload(main);
  t.false(both.servesElsewhere(shop.key));
  t.false(both.servesElsewhere(web.key));
});

test('A changed load balancer lands as well, and its old listeners take no more connections', async (t) => {
  const { main, landing, both, set, reload, advance } = await setUp({}, [web, api]);
  const changed = loadBalancer('web', { members: 2 });
  await set(changed);
  t.deepEqual([main.isDue, both.status().landed], [false, 1]);
  t.deepEqual(main.seen, ['start'], 'the old ones serve until the landing does');
  await reload(landing);
  t.deepEqual(main.seen, ['start', `withdraw ${web.key}`]);
  t.is(both.served(web.key), changed);
  t.is(main.running?.get(web.key), web);
  await advance(REST);
  await reload(main);
  t.is(main.running?.get(web.key), changed);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([both.served(web.key), both.status().landed, main.reloads], [changed, 0, 1]);
  t.is(landing.running?.size, 0);
});

test('What the landing refuses of a changed load balancer leaves the old listeners as they are', async (t) => {
  const { main, landing, both, set, reload, advance } = await setUp({}, [web]);
  landing.refuses.add(web.key);
  const changed = loadBalancer('web', { members: 2 });
  await set(changed);
  await reload(landing);
  t.false(main.seen.includes(`withdraw ${web.key}`));
  await advance(2_000);
  t.true(main.isDue);
  await reload(main);
  await advance(2_000);
  t.deepEqual([both.served(web.key), both.status().landed], [changed, 0]);
});

test('The main dataplane is reloaded without a changed load balancer that is in the landing', async (t) => {
  const { main, landing, both, set, remove, reload, advance } = await setUp({}, [web, api]);
  const changed = loadBalancer('web', { members: 2 });
  await set(changed);
  await reload(landing);
  await remove(api.key);
  await reload(main);
  t.false(main.running?.has(web.key));
  t.deepEqual([main.isDue, both.served(web.key)], [false, changed]);
  const again = loadBalancer('web', { members: 3 });
  await set(again);
  await reload(landing);
  t.deepEqual([main.isDue, both.served(web.key)], [false, again]);
  await advance(REST);
  await reload(main);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([main.running?.get(web.key), both.status().landed], [again, 0]);
});

test('A changed load balancer that is removed while it is in the landing leaves both', async (t) => {
  const { main, landing, both, set, remove, reload } = await setUp({}, [web]);
  await set(loadBalancer('web', { members: 2 }));
  await reload(landing);
  await remove(web.key);
  t.true(main.isDue);
  await reload(main, landing);
  t.deepEqual([main.running?.size, landing.running?.size, both.status().landed], [0, 0, 0]);
  t.false(both.servesElsewhere(web.key));
});

test('A changed load balancer that gives up an address stays in the main dataplane', async (t) => {
  const { main, both, set } = await setUp({}, [web]);
  await set(loadBalancer('web', { address: '192.0.2.11' }));
  t.deepEqual([main.isDue, both.status().landed], [true, 0]);
});

test('An agent that starts leaves what the landing serves there, and ends a move that was under way', async (t) => {
  const desired = new Map([web, shop, api].map((each) => [each.key, each]));
  const places = new Places(desired);
  const main = new TestHaproxy(places.main, () => undefined);
  const landing = new TestHaproxy(places.landing, () => undefined);
  landing.wasThere = true;
  main.wasThere = true;
  landing.running = new Map([
    [shop.key, shop],
    [api.key, api],
  ]);
  main.running = new Map([
    [web.key, web],
    [api.key, api],
  ]);
  const clock = new FakeClock();
  const both = landingOf({ desired, places, main, landing, replan: () => undefined, clock });
  await both.start();
  t.deepEqual(
    [web, shop, api].map(({ key }) => places.of(key)),
    ['main', 'landing', 'moving'],
  );
  const plans = both.plan([web.key, shop.key, api.key]);
  t.true(plans.every(({ effort }) => effort === 'none'));
  await both.apply(plans);
  await clock.advance(3_000);
  t.deepEqual(landing.seen, ['start', `withdraw ${api.key}`]);
  t.is(places.of(api.key), 'main');
});
