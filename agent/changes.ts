// What waits for the loop: load-balancer keys, those that an object's change concerns before those that only have to
// be looked at again. Idle, a key is handed on at once; while the loop is busy keys gather, each once.

/** Keys to translate and to plan. */
export interface Batch {
  /** Keys of load balancers whose objects changed, to the time (performance.now()) when the first change came. */
  readonly changed: ReadonlyMap<string, number>;
  /** Keys to plan again although no object changed. */
  readonly replan: ReadonlySet<string>;
}

/** So many that one batch never holds up a change for longer than a few milliseconds. */
const BATCH = 64;

export class Changes {
  readonly #changed = new Map<string, number>();
  /** Changed too, but on a large scale: behind the single changes. */
  readonly #bulk = new Map<string, number>();
  readonly #replan = new Set<string>();
  #wake: (() => void) | undefined;
  #closed = false;

  get waiting(): number {
    return this.#changed.size + this.#bulk.size + this.#replan.size;
  }

  /** An object of these changed. Many at once make way for few. */
  add(keys: Iterable<string>, now: number): void {
    const fresh = [...keys];
    const queue = fresh.length > BATCH ? this.#bulk : this.#changed;
    for (const key of fresh) if (!this.#changed.has(key) && !queue.has(key)) queue.set(key, now);
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
    const changed = new Map<string, number>();
    for (const queue of [this.#changed, this.#bulk]) {
      for (const [key, since] of queue) {
        if (changed.size >= BATCH) break;
        changed.set(key, Math.min(since, changed.get(key) ?? since));
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
