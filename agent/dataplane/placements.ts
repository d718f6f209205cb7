// Which of the two dataplanes of an engine serves a load balancer: the main one, the landing, or both; that is its placement. Each has a view of the
// desired state with its own load balancers only.
// A pool of routes has no placement of its own: it is wherever load balancers that send to it are, which need it there.
// Why: docs/design/decisions/0065-gateways-land.md
// Why: docs/design/decisions/0087-no-table-of-placements.md

import { withStructureOf } from '../model/last-structure.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { PoolUses } from '../model/pool-uses.ts';
import { DesiredView } from './desired-view.ts';

/**
 * `moving`: the landing serves it until the main one is proved to serve it. `both`: both HAProxies serve this pool,
 * each for different load balancers.
 */
export type Placement = 'main' | 'landing' | 'moving' | 'both';

/** What the main one keeps of a load balancer in the landing that had another structure there before. */
interface Kept {
  readonly before: LoadBalancer;
  /** The pools that it needs in its new structure only. */
  readonly without: ReadonlySet<string>;
}

export class Placements {
  readonly #desired: ReadonlyMap<string, LoadBalancer>;
  readonly #uses: Pick<PoolUses, 'changes' | 'usesOf' | 'countOf'>;
  /** Key: a load balancer, no pool, that is not in the main one alone. */
  readonly #landed = new Map<string, 'landing' | 'moving'>();
  readonly #kept = new Map<string, Kept>();
  /** Keys of what the main one keeps and the landing does not serve yet: a reload, or a start, of the main one must have them. */
  readonly #held = new Set<string>();
  /** Key: a pool that is not in the main one alone, after so many changes of placements and uses. */
  #pools: ReadonlyMap<string, Placement> = NO_PLACEMENTS;
  #poolsAfter = -1;
  #changes = 0;
  /** Key: a pool that was not in the main one alone when changedPools() was last asked. */
  #poolsBefore: ReadonlyMap<string, Placement> = NO_PLACEMENTS;
  readonly main: ReadonlyMap<string, LoadBalancer>;
  readonly landing: ReadonlyMap<string, LoadBalancer>;

  /** `uses`: which load balancers send to which pools. */
  constructor(
    desired: ReadonlyMap<string, LoadBalancer>,
    uses: Pick<PoolUses, 'changes' | 'usesOf' | 'countOf'> = new PoolUses(),
  ) {
    this.#desired = desired;
    this.#uses = uses;
    this.main = new Part(
      desired,
      (key) => this.of(key) !== 'landing',
      (key) => this.#held.has(key),
      (key, now) => keptOf(this.#kept.get(key), now),
    );
    this.landing = new Part(desired, (key) => this.of(key) !== 'main');
  }

  of(key: string): Placement {
    return this.#landed.get(key) ?? this.#currentPools().get(key) ?? 'main';
  }

  /** Not of a pool. */
  set(key: string, placement: 'main' | 'landing' | 'moving'): void {
    if (placement === 'main') this.#landed.delete(key);
    else this.#landed.set(key, placement);
    if (placement !== 'landing') this.#forget(key);
    this.#changes++;
  }

  /**
   * While it is in the landing, the main one keeps this value of it, which follows the desired one except for its structure.
   * The main one keeps only pools that it already has (`isThere`). It is in the main one's view until release().
   */
  keep(key: string, before: LoadBalancer, isThere: (pool: string) => boolean): void {
    this.#held.add(key);
    this.#kept.set(key, { before, without: new Set(this.poolsOf(key).filter((pool) => !isThere(pool))) });
    this.#changes++;
  }

  /** What the main one keeps; undefined for nothing. */
  kept(key: string): LoadBalancer | undefined {
    return this.#kept.get(key)?.before;
  }

  /** The landing serves it: the next reload of the main one is without it. */
  release(key: string): void {
    if (this.#held.delete(key)) this.#changes++;
  }

  /** The main one has nothing of it any more. */
  drop(key: string): void {
    this.#forget(key);
    this.#changes++;
  }

  #forget(key: string): void {
    this.#kept.delete(key);
    this.#held.delete(key);
  }

  /** Load balancers in the landing, also those that move, without pools. */
  landed(): readonly string[] {
    return [...this.#landed.keys()];
  }

  /** The pools that a load balancer sends to, each once. */
  poolsOf(key: string): readonly string[] {
    return [...new Set(this.#uses.usesOf(key).map(({ pool }) => pool))];
  }

  /** The pools that have come or gone in one of the two since the last call: they have to be planned. */
  changedPools(): readonly string[] {
    const [before, now] = [this.#poolsBefore, this.#currentPools()];
    if (before === now) return NONE;
    this.#poolsBefore = now;
    return [...new Set([...before.keys(), ...now.keys()])].filter(
      (pool) => before.get(pool) !== now.get(pool),
    );
  }

  /** What the landing has, and would have with these besides, to which the duration of its reload is in proportion. */
  size(more: readonly string[] = NONE): number {
    const keys = new Set([...this.#landed.keys(), ...more]);
    for (const key of [...keys]) for (const pool of this.poolsOf(key)) keys.add(pool);
    let size = 0;
    for (const key of keys) size += sizeOf(this.#desired.get(key));
    return size;
  }

  #currentPools(): ReadonlyMap<string, Placement> {
    if (this.#landed.size === 0) return NO_PLACEMENTS;
    const changes = this.#changes + this.#uses.changes;
    if (changes !== this.#poolsAfter) this.#pools = this.#placementsOfPools();
    this.#poolsAfter = changes;
    return this.#pools;
  }

  #placementsOfPools(): ReadonlyMap<string, Placement> {
    const placements = new Map<string, Placement>();
    /** Uses by load balancers that are in the landing now. */
    const landed = new Map<string, number>();
    for (const [key, placement] of this.#landed) {
      const kept = this.#kept.get(key);
      for (const { pool } of this.#uses.usesOf(key)) {
        landed.set(pool, (landed.get(pool) ?? 0) + 1);
        if (kept !== undefined && !kept.without.has(pool)) placements.set(pool, 'both');
        else if (placements.get(pool) !== 'both' && (placement === 'moving' || !placements.has(pool)))
          placements.set(pool, placement);
      }
    }
    for (const [pool, uses] of landed) if (uses < this.#uses.countOf(pool)) placements.set(pool, 'both');
    return placements;
  }
}

const NONE: readonly never[] = [];
const NO_PLACEMENTS: ReadonlyMap<string, Placement> = new Map();

/** A reload reads so many routes in the time of one listener or member. */
const ROUTES_PER_MEMBER = 10;

/** Listeners and members, with routes in proportion. */
function sizeOf(loadBalancer: LoadBalancer | undefined): number {
  let size = 0;
  for (const { pool, routing } of loadBalancer?.listeners ?? []) {
    size += 1 + pool.members.length;
    if (routing?.kind !== 'http') continue;
    for (const { hosts } of routing.sections)
      for (const { entries } of hosts) size += entries.length / ROUTES_PER_MEMBER;
  }
  return size;
}

/** Keeps its identity while the desired value does. */
function keptOf(kept: Kept | undefined, now: LoadBalancer): LoadBalancer | undefined {
  if (kept === undefined) return undefined;
  const known = latest.get(kept);
  if (known?.now === now) return known.value;
  const listeners = kept.before.listeners.map((listener) => {
    const today = now.listeners.find(({ name }) => name === listener.name);
    return today === undefined ? listener : withStructureOf(listener, today);
  });
  const value = { ...kept.before, listeners };
  latest.set(kept, { now, value });
  return value;
}

const latest = new WeakMap<Kept, { readonly now: LoadBalancer; readonly value: LoadBalancer }>();

/** The entries of a map whose keys are in the part now. get() alone may find another value of the map's keys. */
class Part extends DesiredView {
  readonly #all: ReadonlyMap<string, LoadBalancer>;
  readonly #isIn: (key: string) => boolean;
  /** The part has what `instead` gives of the key. */
  readonly #isHeld: (key: string) => boolean;
  readonly #keptValue: (key: string, value: LoadBalancer) => LoadBalancer | undefined;

  constructor(
    all: ReadonlyMap<string, LoadBalancer>,
    isIn: (key: string) => boolean,
    isHeld: (key: string) => boolean = () => false,
    keptValue: (key: string, value: LoadBalancer) => LoadBalancer | undefined = () => undefined,
  ) {
    super();
    this.#all = all;
    this.#isIn = isIn;
    this.#isHeld = isHeld;
    this.#keptValue = keptValue;
  }

  get(key: string): LoadBalancer | undefined {
    const value = this.#all.get(key);
    return value === undefined || this.#isIn(key) ? value : this.#keptValue(key, value);
  }

  has(key: string): boolean {
    return this.#all.has(key) && (this.#isIn(key) || this.#isHeld(key));
  }

  *entries(): Generator<[string, LoadBalancer], undefined, void> {
    for (const [key, value] of this.#all) {
      if (this.#isIn(key)) {
        yield [key, value];
        continue;
      }
      const kept = this.#isHeld(key) ? this.#keptValue(key, value) : undefined;
      if (kept !== undefined) yield [key, kept];
    }
  }
}
