// Several dataplanes as one: each plans and serves its own listeners of a load balancer, and their results are joined. A
// load balancer is pending while it is pending in one dataplane.

import type { MetricFamily, MetricRow } from '../base/metric-family.ts';
import type { Engine, LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { Dataplane } from './dataplane.ts';
import type { Continues, EngineChanges } from './engine-changes.ts';
import type { Forwarding, MemberFact, Outcome, Plan } from './forwarder.ts';
import { type JoinedPlan, joinedLiveness, joinedPlans } from './joined.ts';
import type { Liveness, LivenessOptions, RoundPace } from './meter.ts';
import type { RecentFailures } from './recent-failures.ts';
import type { DataplaneStatus, ListenerStats, ListenerTraffic, Load } from './status.ts';

/** A dataplane and the engine whose listeners it serves. */
export interface DataplaneOf<S> {
  readonly engine: Engine;
  readonly dataplane: Dataplane<Plan, S>;
}

const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };
const NO_MEMBERS: ReadonlyMap<string, MemberFact> = new Map();

export class Dataplanes<S> implements Dataplane<JoinedPlan, S>, Forwarding<JoinedPlan> {
  readonly #desired: ReadonlyMap<string, LoadBalancer>;
  readonly #changes: EngineChanges;
  readonly #all: readonly DataplaneOf<S>[];
  readonly #main: Dataplane<Plan, S>;

  /**
   * The first dataplane is the main one: its version and load are shown for the whole. `changes` has the views of the
   * desired state that the dataplanes have.
   */
  constructor(
    desired: ReadonlyMap<string, LoadBalancer>,
    changes: EngineChanges,
    main: DataplaneOf<S>,
    ...others: readonly DataplaneOf<S>[]
  ) {
    this.#desired = desired;
    this.#changes = changes;
    this.#all = [main, ...others];
    this.#main = main.dataplane;
  }

  prepare(): void {
    for (const { dataplane } of this.#all) dataplane.prepare();
  }

  async start(): Promise<void> {
    for (const { engine, dataplane } of this.#all)
      this.#changes.restore(engine, await dataplane.listenersBefore());
    await Promise.all(this.#all.map(({ dataplane }) => dataplane.start()));
  }

  configure(settings: S): void {
    for (const { dataplane } of this.#all) dataplane.configure(settings);
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map(({ dataplane }) => dataplane.close()));
  }

  async processes(): Promise<readonly number[]> {
    return (await Promise.all(this.#all.map(({ dataplane }) => dataplane.processes()))).flat();
  }

  async stop(graceMs: number): Promise<void> {
    await Promise.all(this.#all.map(({ dataplane }) => dataplane.stop(graceMs)));
  }

  follow(keys: Iterable<string>): void {
    this.#changes.update(keys, this.#continues);
  }

  plan(keys: Iterable<string>): readonly JoinedPlan[] {
    return joinedPlans(
      this.#all.map(({ dataplane }) => dataplane),
      keys,
    );
  }

  async apply(plans: readonly JoinedPlan[]): Promise<Outcome> {
    const outcomes: Outcome[] = [];
    // The main one last: what changes to another engine may leave it as soon as it is served there.
    for (let at = this.#all.length - 1; at > 0; at--) {
      const parts = plans.flatMap((plan) => plan.parts[at] ?? []);
      outcomes.push((await this.#all[at]?.dataplane.apply(parts)) ?? NOTHING);
    }
    outcomes.push(await this.#main.apply(this.#mainParts(plans)));
    const unfinished = plans.filter((plan) => this.#lacksPart(plan) || this.#changes.isUnderWay(plan.key));
    return {
      acknowledged: new Set(outcomes.flatMap(({ acknowledged }) => [...acknowledged])),
      pending: new Set([
        ...unfinished.map(({ key }) => key),
        ...outcomes.flatMap(({ pending }) => [...pending]),
      ]),
      lost: outcomes.find(({ lost }) => lost !== undefined)?.lost,
    };
  }

  served(key: string): LoadBalancer | 'pending' | undefined {
    const found = this.#all.map(({ engine, dataplane }) => ({ engine, served: dataplane.served(key) }));
    if (found.some(({ served }) => served === 'pending')) return 'pending';
    const whole = found.flatMap(({ served }) => (served === undefined || served === 'pending' ? [] : served));
    const [first] = whole;
    // The same value from all: nothing is left out, and its identity is kept.
    if (first === undefined || (whole.length === found.length && whole.every((each) => each === first)))
      return first;
    const listeners = found.flatMap(({ engine, served }) =>
      typeof served === 'object' ? served.listeners.filter((listener) => listener.engine === engine) : [],
    );
    return { ...first, listeners };
  }

  serves(listener: string, address?: string): boolean {
    return this.#all.some(({ dataplane }) => dataplane.serves(listener, address));
  }

  continues(listener: string): boolean {
    return this.#all.some(({ dataplane }) => dataplane.continues(listener));
  }

  servesElsewhere(key: string, addresses?: readonly string[]): boolean {
    return this.#all.some(({ dataplane }) => dataplane.servesElsewhere(key, addresses));
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    return this.#serving(listener)?.members(listener) ?? NO_MEMBERS;
  }

  failures(listener: string): RecentFailures | undefined {
    return this.#serving(listener)?.failures(listener);
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    return this.#all.flatMap(({ dataplane }) => dataplane.problemsOf(loadBalancer));
  }

  /** The status of the main dataplane, but with every fault, and `serving` only if all serve. */
  status(): DataplaneStatus {
    const [main, ...others] = this.#all.map(({ dataplane }) => dataplane.status());
    if (main === undefined) throw new Error('There is always a main dataplane');
    const all = [main, ...others];
    return {
      ...main,
      serving: all.every(({ serving }) => serving),
      isAway: all.some(({ isAway }) => isAway),
      isReloading: all.some(({ isReloading }) => isReloading),
      reloadPending: all.flatMap(({ reloadPending }) => reloadPending),
      serversToDelete: sum(all.map(({ serversToDelete }) => serversToDelete)),
      rejected: sum(all.map(({ rejected }) => rejected)),
      blocked: all.flatMap(({ blocked }) => blocked),
      fault: all.map(({ fault }) => fault).find(Boolean) ?? '',
      unserved: all.map(({ unserved }) => unserved).find(Boolean) ?? '',
      persistFault: all.map(({ persistFault }) => persistFault).find(Boolean) ?? '',
      files: all.flatMap(({ files }) => files),
    };
  }

  liveness(options: LivenessOptions): Promise<Liveness> {
    return joinedLiveness(
      this.#all.map(({ dataplane }) => dataplane),
      options,
    );
  }

  async families(pace: RoundPace): Promise<readonly MetricFamily[]> {
    return joined((await Promise.all(this.#all.map(({ dataplane }) => dataplane.families(pace)))).flat());
  }

  *traffic(): Generator<ListenerTraffic, void, void> {
    for (const { dataplane } of this.#all) yield* dataplane.traffic();
  }

  async stats(listener: string): Promise<ListenerStats | undefined> {
    return this.#serving(listener)?.stats(listener);
  }

  loads(): readonly Load[] {
    return this.#main.loads();
  }

  async runningListeners(): Promise<readonly string[] | undefined> {
    const all = await Promise.all(this.#all.map(({ dataplane }) => dataplane.runningListeners()));
    return all.includes(undefined) ? undefined : all.flatMap((listeners) => listeners ?? []);
  }

  async listenersBefore(): Promise<readonly string[]> {
    return (await Promise.all(this.#all.map(({ dataplane }) => dataplane.listenersBefore()))).flat();
  }

  /** The plans of the main dataplane; new ones where it keeps less since the others have applied theirs. */
  #mainParts(plans: readonly JoinedPlan[]): readonly Plan[] {
    const keys = plans.map(({ key }) => key);
    const changed = this.#changes.update(keys, this.#continues);
    const again = new Map(this.#main.plan(changed).map((plan) => [plan.key, plan]));
    return plans.flatMap(({ key, parts: [main] }) => again.get(key) ?? main ?? []);
  }

  readonly #continues: Continues = (engine, listener) =>
    this.#all.find((each) => each.engine === engine)?.dataplane.continues(listener) === true;

  /** A dataplane that has listeners to serve of this load balancer can plan nothing now. */
  #lacksPart({ key, parts }: JoinedPlan): boolean {
    const listeners = this.#desired.get(key)?.listeners ?? [];
    return this.#all.some(
      ({ engine }, at) => parts[at] === undefined && listeners.some((listener) => listener.engine === engine),
    );
  }

  #serving(listener: string): Dataplane<Plan, S> | undefined {
    return this.#all.find(({ dataplane }) => dataplane.serves(listener))?.dataplane;
  }
}

/**
 * One family of each name: the dataplanes give their listeners the same metrics. Of a listener that has just changed its engine
 * the later dataplane's row counts: the first one reads its rows less often.
 */
function joined(families: readonly MetricFamily[]): readonly MetricFamily[] {
  const byName = new Map<string, MetricFamily>();
  for (const family of families) {
    const first = byName.get(family.name);
    byName.set(
      family.name,
      first === undefined
        ? family
        : { ...first, parts: [...without(first.parts, family.parts), ...family.parts] },
    );
  }
  return [...byName.values()];
}

/** The parts without the rows that the others have too. */
function without(parts: MetricFamily['parts'], others: MetricFamily['parts']): MetricFamily['parts'] {
  return parts.map((part) => {
    const alike = others.filter(({ labels, suffix }) => labels === part.labels && suffix === part.suffix);
    const theirs = new Set(alike.flatMap(({ rows }) => rows.map(({ labels }) => labels)));
    const isOwn = ({ labels }: MetricRow): boolean => !theirs.has(labels);
    return part.rows.every(isOwn) ? part : { ...part, rows: part.rows.filter(isOwn) };
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
