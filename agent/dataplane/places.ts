// Which of the two dataplanes of an engine serves a load balancer: the main one, the landing, or both while it moves. Each
// has a view of the desired state with its own load balancers only.

import type { LoadBalancer } from '../model/load-balancer.ts';
import { DesiredView } from './desired-view.ts';

/** `moving`: the landing serves it until the main one is proved to serve it. */
export type Place = 'main' | 'landing' | 'moving';

export class Places {
  readonly #desired: ReadonlyMap<string, LoadBalancer>;
  /** Those that are not in the main one alone. */
  readonly #landed = new Map<string, Exclude<Place, 'main'>>();
  /** What the main one keeps of load balancers in the landing that had another structure there before. */
  readonly #kept = new Map<string, LoadBalancer>();
  readonly main: ReadonlyMap<string, LoadBalancer>;
  readonly landing: ReadonlyMap<string, LoadBalancer>;

  constructor(desired: ReadonlyMap<string, LoadBalancer>) {
    this.#desired = desired;
    const isInMain = (key: string): boolean => this.#landed.get(key) !== 'landing';
    this.main = new Part(desired, isInMain, (key) => this.#kept.get(key));
    this.landing = new Part(desired, (key) => this.#landed.has(key));
  }

  of(key: string): Place {
    return this.#landed.get(key) ?? 'main';
  }

  set(key: string, place: Place): void {
    if (place === 'main') this.#landed.delete(key);
    else this.#landed.set(key, place);
    if (place !== 'landing') this.#kept.delete(key);
  }

  /** The main one needs no plan for this load balancer while it is in the landing: it keeps this value. */
  keep(key: string, value: LoadBalancer): void {
    this.#kept.set(key, value);
  }

  /** What the main one keeps; undefined for nothing. */
  kept(key: string): LoadBalancer | undefined {
    return this.#kept.get(key);
  }

  /** The main one has nothing of it any more. */
  drop(key: string): void {
    this.#kept.delete(key);
  }

  /** Those in the landing, also those that move. */
  landed(): readonly string[] {
    return [...this.#landed.keys()];
  }

  /** The listeners and members in the landing, to which the duration of its reload is in proportion. */
  size(): number {
    let size = 0;
    for (const key of this.#landed.keys()) size += sizeOf(this.#desired.get(key));
    return size;
  }
}

export function sizeOf(loadBalancer: LoadBalancer | undefined): number {
  return (loadBalancer?.listeners ?? []).reduce((sum, { pool }) => sum + 1 + pool.members.length, 0);
}

/** The entries of a map whose keys are in the part now. get() alone may find another value of the map's keys. */
class Part extends DesiredView {
  readonly #all: ReadonlyMap<string, LoadBalancer>;
  readonly #isIn: (key: string) => boolean;
  readonly #instead: (key: string) => LoadBalancer | undefined;

  constructor(
    all: ReadonlyMap<string, LoadBalancer>,
    isIn: (key: string) => boolean,
    instead: (key: string) => LoadBalancer | undefined = () => undefined,
  ) {
    super();
    this.#all = all;
    this.#isIn = isIn;
    this.#instead = instead;
  }

  get(key: string): LoadBalancer | undefined {
    if (this.#isIn(key)) return this.#all.get(key);
    return this.#all.has(key) ? this.#instead(key) : undefined;
  }

  has(key: string): boolean {
    return this.#isIn(key) && this.#all.has(key);
  }

  *entries(): Generator<[string, LoadBalancer], undefined, void> {
    for (const entry of this.#all) if (this.#isIn(entry[0])) yield entry;
  }
}
