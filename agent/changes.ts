// The queue in front of the loop: keys of load balancers to translate, then keys to plan again. An idle loop gets a key
// at once; while the loop is busy, the changes of one key are merged.

/** What one round of the loop takes from the queue. */
export interface Batch {
  /** Key: a load balancer whose objects changed. */
  readonly changed: ReadonlyMap<string, Change>;
  /** Load balancers to plan again although no object changed. */
  readonly replan: ReadonlySet<string>;
}

export interface Change {
  /** When the agent received the first of the merged changes, by performance.now(). */
  readonly since: number;
  /** When the pods behind the changes changed, milliseconds since the epoch; one for each change whose time is known. */
  readonly triggers: readonly number[];
}

/** Keys of one batch: a later change waits at most a few milliseconds for it. */
const MAX_BATCH = 64;

export class Changes {
  readonly #changed = new Map<string, Change>();
  /** Changes of many load balancers at once, by key; single changes overtake them. */
  readonly #bulk = new Map<string, Change>();
  readonly #replan = new Set<string>();
  #wake: (() => void) | undefined;
  #closed = false;

  get waiting(): number {
    return this.#changed.size + this.#bulk.size + this.#replan.size;
  }

  /** Objects of these load balancers changed at `now`, because of pods that changed at `trigger`. */
  add(keys: Iterable<string>, now: number, trigger?: number): void {
    const all = [...keys];
    const queue = all.length > MAX_BATCH ? this.#bulk : this.#changed;
    const change = { since: now, triggers: trigger === undefined ? [] : [trigger] };
    for (const key of all) {
      const holder = this.#changed.has(key) ? this.#changed : queue;
      holder.set(key, merged(holder.get(key), change));
    }
    this.#wake?.();
  }

  /** The dataplane must plan these load balancers again. */
  addReplan(keys: Iterable<string>): void {
    for (const key of keys) this.#replan.add(key);
    this.#wake?.();
  }

  /** Removes and returns all changed keys, for the initial translation. */
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

  /** Batches as they become due. Ends after close(); keys that still wait are dropped. */
  async *drain(): AsyncGenerator<Batch, void, void> {
    while (!this.#closed) {
      if (this.waiting > 0) yield this.#nextBatch();
      else await this.#wait();
    }
  }

  #nextBatch(): Batch {
    const changed = new Map<string, Change>();
    for (const queue of [this.#changed, this.#bulk]) {
      for (const [key, change] of queue) {
        if (changed.size >= MAX_BATCH) break;
        changed.set(key, merged(changed.get(key), change));
        queue.delete(key);
      }
    }
    const isAllTranslated = this.#changed.size === 0 && this.#bulk.size === 0;
    const replan = new Set(isAllTranslated ? [...this.#replan].slice(0, MAX_BATCH) : []);
    for (const key of replan) this.#replan.delete(key);
    return { changed, replan };
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
  }
}

function merged(before: Change | undefined, { since, triggers }: Change): Change {
  if (before === undefined) return { since, triggers };
  return { since: Math.min(before.since, since), triggers: [...before.triggers, ...triggers] };
}
