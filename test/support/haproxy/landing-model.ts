// A landing between two dataplanes that reload when a test says so, and the loop that plans for both.

import type { Clock } from '../../../agent/base/clock.ts';
import type { MemberFact, Outcome, Plan } from '../../../agent/dataplane/forwarder.ts';
import { Landing, type LandingOptions, type LandingSettings } from '../../../agent/dataplane/landing.ts';
import type { AffinityClient, LandingDataplane, MainDataplane } from '../../../agent/dataplane/moves.ts';
import { Placements } from '../../../agent/dataplane/placements.ts';
import type { DataplaneStatus, ListenerTraffic } from '../../../agent/dataplane/status.ts';
import type { LoadBalancer, Problem } from '../../../agent/model/load-balancer.ts';
import { ownerOf, ownerOfListener } from '../../../agent/model/names.ts';
import { type PoolUse, PoolUses } from '../../../agent/model/pool-uses.ts';
import { FakeClock, settled } from '../basics/fake-clock.ts';
import { endpoint, service, slice } from '../values/build.ts';
import { dataplaneStatus } from '../values/dataplane-status.ts';
import { loadBalancerOf, translated } from '../values/translated.ts';

export const REST = 60_000;

/** A load balancer of this name; `members` are checked if `isMonitored`; `limit` is a part of its structure. */
export function loadBalancer(
  name: string,
  { namespace = 'default', members = 1, limit = 0, isMonitored = false, address = '192.0.2.10' } = {},
): LoadBalancer {
  const endpoints = Array.from({ length: members }, (_, at) =>
    endpoint(`10.0.${Math.floor(at / 250)}.${(at % 250) + 1}`),
  );
  const annotations: Readonly<Record<string, string>> = {
    ...(isMonitored && { 'headgate.io/health-monitor': 'tcp' }),
    ...(limit > 0 && { 'headgate.io/connection-limit': String(limit) }),
  };
  return loadBalancerOf(
    translated([
      service({ namespace, name, annotations, loadBalancerIP: address }),
      slice({ namespace, serviceName: name, endpoints }),
    ]),
    `${namespace}/${name}`,
  );
}

/** A dataplane that changes structures by reloads alone, and only when the test says so; all else at once. */
export class TestHaproxy implements MainDataplane<LandingSettings>, LandingDataplane<LandingSettings> {
  readonly part: ReadonlyMap<string, LoadBalancer>;
  readonly replan: (keys: Iterable<string>) => void;
  readonly seen: string[] = [];
  running: Map<string, LoadBalancer> | undefined;
  isDue = false;
  reloads = 0;
  /** Key: a load balancer that the reload under way will serve. */
  #next: Map<string, LoadBalancer> | undefined;
  /** Keys that take no more connections. */
  readonly withdrawn = new Set<string>();
  /** Keys that it refuses. */
  readonly refuses = new Set<string>();
  knowsChecks = true;
  wasThere = false;
  isStarting = false;

  constructor(part: ReadonlyMap<string, LoadBalancer>, replan: (keys: Iterable<string>) => void) {
    this.part = part;
    this.replan = replan;
  }

  /** A reload begins, with what it should serve now. */
  beginReload(): void {
    this.#next ??= new Map([...this.part].filter(([key]) => !this.refuses.has(key)));
  }

  /** Starts or reloads it with what it should serve now, or should have when the reload began. */
  reload(): void {
    const before = this.running;
    this.beginReload();
    this.running = this.#next;
    this.#next = undefined;
    if (before !== undefined) this.reloads++;
    this.isDue = false;
    this.replan([...(this.running?.keys() ?? []), ...(before?.keys() ?? [])]);
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
    return Array.from(keys, (key) => {
      const waits = !this.#lacks(key) && this.#lacksPools(key);
      return { key, effort: waits || this.#lacks(key) ? 'reload' : 'none', waits };
    });
  }

  async apply(plans: readonly Plan[]): Promise<Outcome> {
    const pending = plans.filter(({ effort }) => effort === 'reload').map(({ key }) => key);
    if (plans.some(({ effort, waits }) => effort === 'reload' && !waits)) this.isDue = true;
    for (const { key, effort } of plans) {
      const value = this.part.get(key);
      if (effort === 'none' && value !== undefined) this.running?.set(key, value);
    }
    return { acknowledged: new Set(), pending: new Set(pending), lost: undefined };
  }

  served(key: string): LoadBalancer | 'pending' | undefined {
    if (this.running === undefined || this.#lacks(key) || this.#lacksPools(key)) return 'pending';
    return this.part.get(key) && this.running.get(key);
  }

  serves(listener: string): boolean {
    return [...(this.running?.values() ?? [])].some((each) =>
      each.listeners.some(({ name }) => name === listener),
    );
  }

  continues(listener: string): boolean {
    const owner = ownerOfListener(listener);
    return this.serves(listener) && !this.withdrawn.has(owner) && this.#next?.has(owner) !== false;
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

  failures(): undefined {
    return undefined;
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

  async listenersBefore(): Promise<readonly string[]> {
    return this.keptListeners();
  }

  async keptListeners(): Promise<readonly string[]> {
    return this.wasThere ? this.runningListeners() : [];
  }

  async endHung() {
    this.seen.push('endHung');
  }

  async affinity(keys: Iterable<string>) {
    return Array.from(keys, (listener) => ({ listener, address: '192.0.2.7', memberId: 7 }));
  }

  async remember(clients: readonly AffinityClient[]): Promise<void> {
    this.seen.push(`remember ${clients.map(({ listener }) => listener).join()}`);
  }

  async withdraw(keys: Iterable<string>): Promise<void> {
    for (const key of keys) this.withdrawn.add(key);
    this.seen.push(`withdraw ${[...keys].join()}`);
  }

  admit(keys: Iterable<string>): void {
    for (const key of keys) this.withdrawn.delete(key);
  }

  /** A pool that is no longer desired needs no reload. */
  #lacks(key: string): boolean {
    if (this.part.get(key) === undefined && ownerOf(key).kind === 'Pool') return false;
    return !this.refuses.has(key) && structureOf(this.part.get(key)) !== structureOf(this.running?.get(key));
  }

  /** Rows wait for pools that it does not have. */
  #lacksPools(key: string): boolean {
    return usesOf(this.part.get(key)).some(({ pool }) => this.running?.has(pool) !== true);
  }
}

/** All but what commands change. */
function structureOf(loadBalancer: LoadBalancer | undefined): string {
  return JSON.stringify(
    loadBalancer?.listeners.map((listener) => ({
      ...listener,
      routing: listener.routing?.kind,
      allowedCidrs: [],
      pool: { ...listener.pool, members: [] },
    })),
  );
}

/** The pools that its routes send to. */
export function usesOf(loadBalancer: LoadBalancer | undefined): readonly PoolUse[] {
  const pools = new Set<string>();
  for (const { routing } of loadBalancer?.listeners ?? [])
    for (const { hosts } of routing?.kind === 'http' ? routing.sections : [])
      for (const { rule } of hosts.flatMap(({ entries }) => entries))
        for (const { pool = '' } of rule.action.kind === 'forward' ? rule.action.backends : [])
          pools.add(ownerOfListener(pool));
  return [...pools].map((pool) => ({ pool, port: 80 }));
}

export function landingOf(
  {
    clock,
    ...parts
  }: Omit<LandingOptions<LandingSettings>, 'engine' | 'settings' | 'onAway'> & {
    readonly clock?: Clock;
  },
  settings: Partial<LandingSettings> = {},
): Landing<LandingSettings> {
  const all = { landing: true, landingRest: REST, ...settings };
  return new Landing({ ...parts, engine: 'haproxy', settings: all, onAway: () => undefined }, clock);
}

/** A main dataplane that serves `first`, a landing that does not run yet, and the loop that plans for both. */
export async function setUp(
  settings: Partial<LandingSettings> = {},
  first: readonly LoadBalancer[] = [],
  /** What both serve from before; absent: the main one is started with all. */
  before?: (landing: TestHaproxy, main: TestHaproxy) => void,
) {
  const clock = new FakeClock();
  const desired = new Map(first.map((each) => [each.key, each]));
  const uses = new PoolUses();
  for (const each of first) uses.update(each.key, usesOf(each));
  const placements = new Placements(desired, uses);
  const due = new Set<string>();
  const replan = (keys: Iterable<string>): void => {
    for (const key of keys) due.add(key);
  };
  const main = new TestHaproxy(placements.main, replan);
  const landing = new TestHaproxy(placements.landing, replan);
  const both = landingOf({ desired, placements, main, landing, replan, clock }, settings);
  if (before === undefined) main.reload();
  else before(landing, main);
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
    placements,
    /** The values replace those of their keys. */
    set: async (...values: readonly LoadBalancer[]): Promise<Outcome | undefined> => {
      for (const value of values) {
        desired.set(value.key, value);
        uses.update(value.key, usesOf(value));
      }
      replan(values.map(({ key }) => key));
      return loop();
    },
    remove: async (...keys: readonly string[]): Promise<void> => {
      for (const key of keys) {
        desired.delete(key);
        uses.update(key, []);
      }
      replan(keys);
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
