// Two dataplanes of one engine as one: a load balancer that is new, or whose structure changed, is served by a small one
// first, the landing, whose reload takes some 25 ms whatever the main one holds. When nothing has landed for a while, all
// move to the main one together (moves.ts). Without a landing that works, everything is in the main one.
// Why: docs/design/decisions/0037-landing.md

import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { MetricFamily } from '../base/metric-family.ts';
import { Rounds } from '../base/rounds.ts';
import type { Engine, LoadBalancer, Problem } from '../model/load-balancer.ts';
import { ownerOf, ownerOfListener } from '../model/names.ts';
import { Arrivals } from './arrivals.ts';
import type { Dataplane } from './dataplane.ts';
import type { MemberFact, Outcome, Plan } from './forwarder.ts';
import { joinedLiveness, joinedPlans } from './joined.ts';
import type { Liveness, LivenessOptions, RoundPace } from './meter.ts';
import { type LandingDataplane, type MainDataplane, Moves } from './moves.ts';
import type { Placements } from './placements.ts';
import type { RecentFailures } from './recent-failures.ts';
import type { DataplaneStatus, ListenerStats, ListenerTraffic, Load } from './status.ts';

export interface LandingSettings {
  /** New load balancers, and those whose structure changed, land. */
  readonly landing: boolean;
  /** Milliseconds in which none landed, after which all move to the main dataplane. */
  readonly landingRest: number;
}

export interface LandingOptions<S extends LandingSettings> {
  /** Whose listeners both serve. */
  readonly engine: Engine;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly placements: Placements;
  readonly main: MainDataplane<S>;
  readonly landing: LandingDataplane<S>;
  readonly settings: S;
  readonly replan: (keys: Iterable<string>) => void;
  /** The landing does not serve: its load balancers, so many, go to the main dataplane. */
  readonly onAway: (loadBalancers: number, error: string) => void;
}

interface LandingPlan extends Plan {
  /** undefined if the dataplane can plan nothing now. */
  readonly main: Plan | undefined;
  readonly landing: Plan | undefined;
}

const CHECK_INTERVAL_MS = 1_000;
/** Listeners and members, with routes in proportion: a reload with more takes longer than 50 ms. */
const MAX_SIZE = 1_000;
/** Each costs the landing a reload, and a client with an open connection keeps the worker of before. */
const MAX_LANDED = 40;
/** The most of one namespace, so that there is room for the new ones of others. */
const MAX_LANDED_OF_ONE = 30;
/** The landing has not served for so long: its load balancers go to the main dataplane. */
const MOST_ABSENCE_MS = 2_000;
/** A start, which takes seconds on a busy host, may take so long. */
const MOST_START_MS = 10_000;
/** All move after so many rests, even if load balancers continue to land. */
const MOST_RESTS = 10;

export class Landing<S extends LandingSettings> implements Dataplane<LandingPlan, S> {
  readonly #options: LandingOptions<S>;
  readonly #placements: Placements;
  readonly #main: MainDataplane<S>;
  readonly #landing: LandingDataplane<S>;
  readonly #clock: Clock;
  readonly #arrivals: Arrivals;
  readonly #moves: Moves;
  readonly #rounds: Rounds;
  #settings: S;
  /** The landing was started. */
  #isStarted = false;
  #isClosed = false;
  /** The landing does not serve: nothing lands until it does. */
  #isFailed = false;
  /** When the landing was last seen to serve. */
  #servedAt: number;
  /** When a load balancer landed last, and when the first of those that are there did. */
  #landedAt = 0;
  #firstAt = 0;

  constructor(options: LandingOptions<S>, clock: Clock = systemClock) {
    const { placements, main, landing, settings } = options;
    this.#options = options;
    this.#placements = placements;
    this.#main = main;
    this.#landing = landing;
    this.#settings = settings;
    this.#clock = clock;
    this.#servedAt = clock.monotonic();
    this.#arrivals = new Arrivals(options);
    this.#moves = new Moves({ ...options, clock });
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => this.#fail(messageOf(error)),
      clock,
    });
  }

  prepare(): void {
    this.#main.prepare();
    if (this.#settings.landing) this.#landing.prepare();
  }

  /** What a landing from before this agent serves stays there. Resolves when the main dataplane is started. */
  async start(): Promise<void> {
    const there = owners(await this.#landing.keptListeners());
    if (there.size > 0) {
      const inMain = owners(await this.#main.keptListeners());
      for (const key of there) this.#land(key);
      this.#moves.begin([...there].filter((key) => inMain.has(key)));
    }
    await this.#main.start();
    if (this.#settings.landing || there.size > 0) this.#begin();
  }

  configure(settings: S): void {
    this.#settings = settings;
    this.#main.configure(settings);
    this.#landing.configure(settings);
    if (!settings.landing) this.#moves.begin(this.#placements.landed());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#rounds.close();
    // The main dataplane counts for both a last time.
    await this.#main.close();
    await this.#landing.close();
  }

  async processes(): Promise<readonly number[]> {
    return [...(await this.#main.processes()), ...(await this.#landing.processes())];
  }

  async stop(graceMs: number): Promise<void> {
    await Promise.all([this.#main.stop(graceMs), this.#landing.stop(graceMs)]);
  }

  plan(keys: Iterable<string>): readonly LandingPlan[] {
    return joinedPlans([this.#main, this.#landing], keys).map(({ key, effort, parts: [main, landing] }) => ({
      key,
      effort,
      main,
      landing,
    }));
  }

  async apply(plans: readonly LandingPlan[]): Promise<Outcome> {
    const current = this.#arrive(plans);
    const landing = await this.#landing.apply(current.flatMap((plan) => plan.landing ?? []));
    // Its start may take longer than an absence may.
    if (this.#landing.status().serving) this.#servedAt = this.#clock.monotonic();
    const main = await this.#main.apply(current.flatMap((plan) => plan.main ?? []));
    const unplanned = current.filter((plan) => this.#lacksPart(plan)).map(({ key }) => key);
    const keys = current.map(({ key }) => key);
    this.#arrivals.remember(keys);
    await this.#arrivals.withdrawChanged(keys);
    this.#forget(current);
    this.#moves.introduce(current.flatMap(({ key, main }) => (main?.effort === 'none' ? key : [])));
    return {
      acknowledged: new Set([...landing.acknowledged, ...main.acknowledged]),
      pending: new Set([...unplanned, ...landing.pending, ...main.pending]),
      lost: main.lost ?? landing.lost,
    };
  }

  served(key: string): LoadBalancer | 'pending' | undefined {
    const served = this.#servingOwner(key).served(key);
    return this.#placements.of(key) === 'both' && this.#landing.served(key) === 'pending'
      ? 'pending'
      : served;
  }

  serves(listener: string, address?: string): boolean {
    return this.#main.serves(listener, address) || this.#landing.serves(listener, address);
  }

  continues(listener: string): boolean {
    return this.#main.continues(listener) || this.#landing.continues(listener);
  }

  servesElsewhere(key: string, addresses?: readonly string[]): boolean {
    // A landing that does not serve has nothing but what is placed there.
    const isThere = this.#placements.of(key) !== 'main' || this.#landing.status().serving;
    const inLanding = isThere && this.#landing.servesElsewhere(key, addresses);
    return inLanding || this.#main.servesElsewhere(key, addresses);
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    return this.#serving(listener).members(listener);
  }

  failures(listener: string): RecentFailures | undefined {
    return this.#serving(listener).failures(listener);
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    return this.#servingOwner(loadBalancer.key).problemsOf(loadBalancer);
  }

  /** The status of the main dataplane, with reloads and faults of the landing. */
  status(): DataplaneStatus {
    const [main, landing] = [this.#main.status(), this.#landing.status()];
    const landed = this.#placements.landed().length;
    if (landed === 0) return main;
    return {
      ...main,
      isReloading: main.isReloading || landing.isReloading,
      reloadPending: [...new Set([...main.reloadPending, ...landing.reloadPending])],
      serversToDelete: main.serversToDelete + landing.serversToDelete,
      landed,
      fault: main.fault || (landing.serving ? landing.fault : ''),
      persistFault: main.persistFault || landing.persistFault,
      files: [...main.files, ...landing.files],
    };
  }

  liveness(options: LivenessOptions): Promise<Liveness> {
    const both = this.#placements.landed().length === 0 ? [this.#main] : [this.#main, this.#landing];
    return joinedLiveness(both, options);
  }

  /** The main dataplane counts for the landing, too, so that no count goes back when a load balancer moves. */
  families(pace: RoundPace): Promise<readonly MetricFamily[]> {
    return this.#main.families(pace);
  }

  traffic(): Iterable<ListenerTraffic> {
    return this.#main.traffic();
  }

  stats(listener: string): Promise<ListenerStats | undefined> {
    return this.#serving(listener).stats(listener);
  }

  loads(): readonly Load[] {
    return this.#main.loads();
  }

  async listenersBefore(): Promise<readonly string[]> {
    return [...(await this.#main.listenersBefore()), ...(await this.#landing.listenersBefore())];
  }

  async runningListeners(): Promise<readonly string[] | undefined> {
    const main = await this.#main.runningListeners();
    const landing = await this.#landing.keptListeners();
    return main && [...new Set([...main, ...landing])];
  }

  /** Gives new and changed load balancers to the landing if it has room, and plans them and their pools again. */
  #arrive(plans: readonly LandingPlan[]): readonly LandingPlan[] {
    const lost = plans.map(({ key }) => key).filter((key) => this.#arrivals.isLost(key));
    for (const key of lost) this.#placements.drop(key);
    const due = plans.filter(({ key, main }) => this.#arrivals.isDue(key, main)).map(({ key }) => key);
    const arriving = this.#withinShares(due);
    if (arriving.length > 0 && this.#hasRoom(arriving)) {
      for (const key of arriving) {
        this.#land(key);
        this.#arrivals.begin(key);
      }
      this.#begin();
    }
    const pools = this.#placements.changedPools();
    if (pools.length > 0) this.#limit();
    const changed = new Set([...lost, ...arriving, ...pools]);
    if (changed.size === 0) return plans;
    return [...plans.filter(({ key }) => !changed.has(key)), ...this.plan(changed)];
  }

  /** Without those of a namespace that has taken its share of the landing: its other ones there move. */
  #withinShares(keys: readonly string[]): readonly string[] {
    const arriving = Map.groupBy(keys, (key) => ownerOf(key).namespace);
    return [...arriving].flatMap(([namespace, own]) => {
      const there = this.#placements.landed().filter((key) => ownerOf(key).namespace === namespace);
      const fits = new Set([...there, ...own]).size <= MAX_LANDED_OF_ONE;
      if (!fits) this.#moves.begin(there);
      return fits ? own : [];
    });
  }

  #hasRoom(keys: readonly string[]): boolean {
    if (!this.#settings.landing || this.#isClosed) return false;
    if (this.#isFailed && this.#landing.status().serving) this.#isFailed = false;
    const landed = this.#placements.landed().length + keys.length;
    const fits = landed <= MAX_LANDED && this.#placements.size(keys) <= MAX_SIZE;
    // The main dataplane is about to be reloaded for the new ones: the others go with them.
    if (!fits) this.#moves.begin(this.#placements.landed());
    return fits && !this.#isFailed;
  }

  /** All move as soon as what is in the landing has grown too much. */
  #limit(): void {
    if (this.#placements.size() > MAX_SIZE) this.#moves.begin(this.#placements.landed());
  }

  #land(key: string): void {
    this.#landedAt = this.#clock.monotonic();
    if (this.#placements.landed().length === 0) {
      this.#firstAt = this.#landedAt;
      this.#servedAt = this.#landedAt;
      this.#rounds.start();
    }
    this.#placements.set(key, 'landing');
    this.#landing.admit([key]);
  }

  /** Starts the landing. */
  #begin(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#landing.start().catch((error: unknown) => this.#fail(messageOf(error)));
  }

  async #check(): Promise<void> {
    const landed = this.#placements.landed();
    if (landed.length === 0) {
      this.#rounds.close();
      return;
    }
    const now = this.#clock.monotonic();
    const most = this.#landing.isStarting ? MOST_START_MS : MOST_ABSENCE_MS;
    if (this.#landing.status().serving) this.#servedAt = now;
    else if (now - this.#servedAt > most) {
      if (!this.#isFailed) await this.#landing.endHung();
      this.#fail(this.#landing.status().fault);
    }
    this.#moves.begin(landed.filter((key) => this.#isRefused(key)));
    const { landingRest } = this.#settings;
    const isOver = now - this.#landedAt >= landingRest || now - this.#firstAt >= MOST_RESTS * landingRest;
    if (isOver) this.#moves.begin(landed);
    this.#limit();
    await this.#moves.end(landed);
  }

  #fail(error: string): void {
    const landed = this.#placements.landed();
    if (!this.#isFailed) this.#options.onAway(landed.length, error);
    this.#isFailed = true;
    this.#moves.begin(landed);
  }

  /** The main dataplane may refuse it as well, and then says so. */
  #isRefused(key: string): boolean {
    const { desired } = this.#options;
    const loadBalancer = desired.get(key);
    if (loadBalancer === undefined) return false;
    const pools = this.#placements.poolsOf(key).flatMap((pool) => desired.get(pool) ?? []);
    if ([loadBalancer, ...pools].every((each) => this.#landing.problemsOf(each).length === 0)) return false;
    this.#arrivals.refuse(loadBalancer);
    return true;
  }

  /** Forgets those that are gone. */
  #forget(plans: readonly LandingPlan[]): void {
    for (const { key, landing } of plans)
      if (!this.#options.desired.has(key) && landing?.effort === 'none') {
        this.#moves.forget(key);
        this.#arrivals.forget(key);
      }
  }

  /** A dataplane that has to serve the load balancer can plan nothing now. */
  #lacksPart({ key, main, landing }: LandingPlan): boolean {
    if (this.#arrivals.listenersOf(key).length === 0) return false;
    const placement = this.#placements.of(key);
    return (placement !== 'landing' && main === undefined) || (placement !== 'main' && landing === undefined);
  }

  #serving(listener: string): Dataplane<Plan, S> {
    return this.#servingOwner(ownerOfListener(listener));
  }

  /** A pool that both serve is first of all the main one's. */
  #servingOwner(key: string): Dataplane<Plan, S> {
    const placement = this.#placements.of(key);
    return placement === 'main' || placement === 'both' ? this.#main : this.#landing;
  }
}

/** Without pools of routes, which follow the others. */
function owners(listeners: readonly string[]): ReadonlySet<string> {
  return new Set(listeners.map(ownerOfListener).filter((key) => ownerOf(key).kind !== 'Pool'));
}
