// Which load balancers land: new ones, and those whose structure changed. The main dataplane keeps the old listeners of a
// changed one until it moves; they take no more connections as soon as the landing serves the new ones.

import type { Engine, LoadBalancer } from '../model/load-balancer.ts';
import { ownerOf } from '../model/names.ts';
import type { DataplaneFacts, Plan } from './forwarder.ts';
import type { LandingDataplane, MainDataplane } from './moves.ts';
import type { Placements } from './placements.ts';

export interface ArrivalsOptions {
  /** Whose listeners the dataplanes serve. */
  readonly engine: Engine;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly placements: Placements;
  readonly main: Pick<DataplaneFacts, 'serves' | 'servesElsewhere'> & Pick<MainDataplane<never>, 'withdraw'>;
  readonly landing: Pick<LandingDataplane<never>, 'served' | 'continues'>;
}

export class Arrivals {
  readonly #options: ArrivalsOptions;
  /** The value that the main dataplane was last given, by key. */
  readonly #mainValues = new Map<string, LoadBalancer>();
  /** Keys whose old listeners in the main dataplane take no more connections. */
  readonly #withdrawn = new Set<string>();
  /** Values that the landing has refused. */
  readonly #refused = new WeakSet<LoadBalancer>();

  constructor(options: ArrivalsOptions) {
    this.#options = options;
  }

  /** `plan`: the main dataplane's; undefined if it can plan nothing now. */
  isDue(key: string, plan: Plan | undefined): boolean {
    const { desired, placements } = this.#options;
    const now = desired.get(key);
    if (now === undefined || plan?.effort !== 'reload' || plan.waits === true) return false;
    // A pool of routes follows the load balancers that send to it.
    if (placements.of(key) !== 'main' || ownerOf(key).kind === 'Pool') return false;
    // Without a listener to serve, the main dataplane has no more than checks to begin, and they can wait.
    if (this.#refused.has(now) || this.listenersOf(key).length === 0) return false;
    return this.#isNew(key) || this.#isChanged(key, now);
  }

  /** It is in the landing from now on. */
  begin(key: string): void {
    const { placements, main } = this.#options;
    const before = this.#mainValues.get(key);
    this.#withdrawn.delete(key);
    if (before !== undefined && this.#namesOf(before).some((name) => main.serves(name)))
      placements.keep(key, before, (pool) => this.listenersOf(pool).every((name) => main.serves(name)));
  }

  /** The main dataplane was reloaded without a load balancer that it kept. */
  isLost(key: string): boolean {
    const { placements, main } = this.#options;
    const kept = placements.kept(key);
    return kept !== undefined && !this.#namesOf(kept).some((name) => main.serves(name));
  }

  /** These were given to the dataplanes as they are desired now. */
  remember(keys: readonly string[]): void {
    const { desired, placements } = this.#options;
    for (const key of keys) {
      const value = desired.get(key);
      if (value === undefined) this.#mainValues.delete(key);
      else if (placements.of(key) !== 'landing') this.#mainValues.set(key, value);
    }
  }

  /**
   * If the landing serves a changed load balancer, and no reload under way ends that, its old listeners take no more
   * connections.
   */
  async withdrawChanged(keys: readonly string[]): Promise<void> {
    const { placements, main, landing } = this.#options;
    const changed = keys
      .filter((key) => placements.kept(key) !== undefined && !this.#withdrawn.has(key))
      .filter((key) => {
        const names = this.listenersOf(key);
        return typeof landing.served(key) === 'object' && names.every((name) => landing.continues(name));
      });
    if (changed.length === 0) return;
    for (const key of changed) {
      this.#withdrawn.add(key);
      placements.release(key);
    }
    await main.withdraw(changed).catch(() => undefined);
  }

  /** It does not land as it is now. */
  refuse(loadBalancer: LoadBalancer): void {
    this.#refused.add(loadBalancer);
  }

  forget(key: string): void {
    this.#withdrawn.delete(key);
  }

  /** The names of its listeners that the dataplanes serve. */
  listenersOf(key: string): readonly string[] {
    return this.#namesOf(this.#options.desired.get(key));
  }

  #isNew(key: string): boolean {
    return this.listenersOf(key).every((name) => !this.#options.main.serves(name));
  }

  /** The main dataplane can keep its old listeners until a move. */
  #isChanged(key: string, after: LoadBalancer): boolean {
    const before = this.#mainValues.get(key);
    if (before === undefined || before === after) return false;
    // An address that it gives up must be free soon.
    const addresses = after.listeners.flatMap((listener) => listener.addresses);
    return !this.#options.main.servesElsewhere(key, addresses);
  }

  #namesOf(loadBalancer: LoadBalancer | undefined): readonly string[] {
    const listeners = loadBalancer?.listeners ?? [];
    return listeners.filter(({ engine }) => engine === this.#options.engine).map(({ name }) => name);
  }
}
