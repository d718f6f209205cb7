// What an engine keeps of listeners that change to another one, until that one serves them. Each dataplane has a view of the
// desired state with what it keeps, so that nothing that it does meanwhile, such as a reload for another load balancer, ends
// a listener that nothing else serves yet.
// Why: docs/design/decisions/0069-engine-changes.md

import { withStructureOf } from '../model/last-structure.ts';
import type { Engine, Listener, LoadBalancer } from '../model/load-balancer.ts';
import { ownerOfListener } from '../model/names.ts';
import { DesiredView } from './desired-view.ts';

/** Whether the engine serves the listener, and continues to. */
export type Continues = (engine: Engine, listener: string) => boolean;

interface Kept {
  readonly engine: Engine;
  /** As it was desired last for this engine. */
  readonly listener: Listener;
}

/** By the listener's name. */
type KeptListeners = ReadonlyMap<string, Kept>;

const ENGINES: readonly Engine[] = ['haproxy', 'kernel'];

export class EngineChanges {
  readonly #desired: ReadonlyMap<string, LoadBalancer>;
  /** The values of the last update, by key. */
  readonly #last = new Map<string, LoadBalancer>();
  /** By key. */
  readonly #kept = new Map<string, KeptListeners>();

  constructor(desired: ReadonlyMap<string, LoadBalancer>) {
    this.#desired = desired;
  }

  /** The desired state with what this engine keeps. */
  viewOf(engine: Engine): ReadonlyMap<string, LoadBalancer> {
    return new EngineView(engine, this.#desired, this.#kept);
  }

  /** True while an engine keeps a listener of this load balancer. */
  isUnderWay(key: string): boolean {
    return this.#kept.has(key);
  }

  /** These listeners were the engine's before this agent started, so that it keeps those that are another one's now. */
  restore(engine: Engine, listeners: readonly string[]): void {
    for (const [key, names] of Map.groupBy(listeners, ownerOfListener)) {
      const kept = (this.#desired.get(key)?.listeners ?? [])
        .filter((each) => each.engine !== engine && each.addresses.length > 0 && names.includes(each.name))
        .map((listener): [string, Kept] => [listener.name, { engine, listener: { ...listener, engine } }]);
      if (kept.length > 0) this.#kept.set(key, new Map([...(this.#kept.get(key) ?? []), ...kept]));
    }
  }

  /** Finds out what is kept of these load balancers now. Gives the keys for which that has changed. */
  update(keys: Iterable<string>, continues: Continues): readonly string[] {
    return [...new Set(keys)].filter((key) => this.#hasChanged(key, continues));
  }

  #hasChanged(key: string, continues: Continues): boolean {
    const [now, last, before] = [this.#desired.get(key), this.#last.get(key), this.#kept.get(key)];
    if (now === undefined) {
      this.#last.delete(key);
      return this.#kept.delete(key);
    }
    if (now === last && before === undefined) return false;
    this.#last.set(key, now);
    const kept = new Map<string, Kept>();
    for (const listener of now.listeners) {
      const { name, engine } = listener;
      if (listener.addresses.length === 0 || continues(engine, name)) continue;
      const earlier = before?.get(name);
      const keeper = earlier?.engine === engine ? undefined : earlier;
      const found = keeper ?? (last === undefined ? running(listener, continues) : changed(listener, last));
      if (found !== undefined) kept.set(name, found);
    }
    if (kept.size === (before?.size ?? 0) && [...kept].every(([name, each]) => before?.get(name) === each))
      return false;
    if (kept.size > 0) this.#kept.set(key, kept);
    else this.#kept.delete(key);
    return true;
  }
}

/** The engine that the listener had in the last value, if it has another one now. */
function changed({ name, engine }: Listener, last: LoadBalancer): Kept | undefined {
  const listener = last.listeners.find((each) => each.name === name);
  return listener === undefined || listener.engine === engine
    ? undefined
    : { engine: listener.engine, listener };
}

/** Another engine that serves the listener since before this agent. */
function running(listener: Listener, continues: Continues): Kept | undefined {
  const engine = ENGINES.find((each) => each !== listener.engine && continues(each, listener.name));
  return engine && { engine, listener: { ...listener, engine } };
}

class EngineView extends DesiredView {
  readonly #engine: Engine;
  readonly #desired: ReadonlyMap<string, LoadBalancer>;
  readonly #kept: ReadonlyMap<string, KeptListeners>;
  /** The same value for the same desired load balancer with the same kept listeners. */
  readonly #values = new WeakMap<
    LoadBalancer,
    { readonly kept: KeptListeners; readonly value: LoadBalancer }
  >();

  constructor(
    engine: Engine,
    desired: ReadonlyMap<string, LoadBalancer>,
    kept: ReadonlyMap<string, KeptListeners>,
  ) {
    super();
    this.#engine = engine;
    this.#desired = desired;
    this.#kept = kept;
  }

  get(key: string): LoadBalancer | undefined {
    const now = this.#desired.get(key);
    return now && this.#valueOf(key, now);
  }

  has(key: string): boolean {
    return this.#desired.has(key);
  }

  override get size(): number {
    return this.#desired.size;
  }

  *entries(): Generator<[string, LoadBalancer], undefined, void> {
    for (const entry of this.#desired)
      yield this.#kept.has(entry[0]) ? [entry[0], this.#valueOf(...entry)] : entry;
  }

  #valueOf(key: string, now: LoadBalancer): LoadBalancer {
    const kept = this.#kept.get(key);
    if (kept === undefined) return now;
    const known = this.#values.get(now);
    if (known?.kept === kept) return known.value;
    const isMine = [...kept.values()].some(({ engine }) => engine === this.#engine);
    const value = isMine
      ? { ...now, listeners: now.listeners.map((each) => this.#listenerOf(each, kept)) }
      : now;
    this.#values.set(now, { kept, value });
    return value;
  }

  /** A kept listener follows its clients, members and addresses. */
  #listenerOf(now: Listener, kept: KeptListeners): Listener {
    const mine = kept.get(now.name);
    if (mine?.engine !== this.#engine) return now;
    return { ...withStructureOf(mine.listener, now), addresses: now.addresses };
  }
}
