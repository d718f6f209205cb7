// What waits for the loop: load-balancer keys, those that an object's change concerns before those that only have to
// be looked at again. Idle, a key is handed on at once; while the loop is busy keys gather, each once.

/** Keys to translate and to plan. */
export interface Batch {
  /** Keys of load balancers whose objects changed. */
  readonly changed: ReadonlyMap<string, Change>;
  /** Keys to plan again although no object changed. */
  readonly replan: ReadonlySet<string>;
}

export interface Change {
  /** When the first of the changes came, by performance.now(). */
  readonly since: number;
  /** When pods changed that made them, as far as it is known: one time for each change, milliseconds since the epoch. */
  readonly triggers: readonly number[];
}

/** So many that one batch never holds up a change for longer than a few milliseconds. */
const BATCH = 64;

export class Changes {
  readonly #changed = new Map<string, Change>();
  /** Changed too, but on a large scale: behind the single changes. */
  readonly #bulk = new Map<string, Change>();
  readonly #replan = new Set<string>();
  #wake: (() => void) | undefined;
  #closed = false;

  get waiting(): number {
    return this.#changed.size + this.#bulk.size + this.#replan.size;
  }

  /** An object of these changed, because of the pods that changed at `trigger`. Many at once make way for few. */
  add(keys: Iterable<string>, now: number, trigger?: number): void {
    const fresh = [...keys];
    const queue = fresh.length > BATCH ? this.#bulk : this.#changed;
    const change = { since: now, triggers: trigger === undefined ? [] : [trigger] };
    for (const key of fresh) {
      const holder = this.#changed.has(key) ? this.#changed : queue;
      holder.set(key, both(holder.get(key), change));
    }
    this.#wake?.();
  }

  /** The dataplane wants to plan these again. */
  addReplan(keys: Iterable<string>): void {
    for (const key of keys) this.#replan.add(key);
    this.#wake?.();
  }

  /** All keys whose objects changed, at once: for the start, when nothing can overtake anything. */
  takeAll(): ReadonlySet<string> {
    const keys = new Set([...this.#changed.keys(), ...this.#bulk.keys()]);
    this.#changed.clear();
    this.#bulk.clear();
    return keys;
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  /** Ends after close(), without what still waits. */
  async *drain(): AsyncGenerator<Batch, void, void> {
    while (!this.#closed) {
      if (this.waiting > 0) yield this.#take();
      else await this.#wait();
    }
  }

  #take(): Batch {
    const changed = new Map<string, Change>();
    for (const queue of [this.#changed, this.#bulk]) {
      for (const [key, change] of queue) {
        if (changed.size >= BATCH) break;
        changed.set(key, both(changed.get(key), change));
        queue.delete(key);
      }
    }
    const replan = new Set<string>();
    if (this.#changed.size === 0 && this.#bulk.size === 0) {
      for (const key of this.#replan) {
        if (replan.size >= BATCH) break;
        replan.add(key);
        this.#replan.delete(key);
      }
    }
    return { changed, replan };
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
  }
}

function both(before: Change | undefined, { since, triggers }: Change): Change {
  if (before === undefined) return { since, triggers };
  return { since: Math.min(before.since, since), triggers: [...before.triggers, ...triggers] };
}
