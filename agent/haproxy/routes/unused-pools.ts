// When the pools that no route sends to any more lose their servers: a second later, because a request may be on its way to
// them, and not while rows wait for another pool, or a reload for listeners that go, because until then those of before may
// lead to them.
// Why: docs/design/decisions/0066-unused-pools.md

import { type Clock, systemClock } from '../../base/clock.ts';
import { DueTimer } from '../../base/due-timer.ts';

export interface UnusedPoolsOptions {
  /** Rows wait for a pool, or a reload is to come. */
  readonly isWaiting: () => boolean;
  /** Gets the keys of pools that may lose their servers now. */
  readonly onDue: (keys: readonly string[]) => void;
  readonly clock?: Clock;
}

const REST_MS = 1_000;

export class UnusedPools {
  readonly #options: UnusedPoolsOptions;
  readonly #clock: Clock;
  readonly #timer: DueTimer;
  /** By key: when it may lose its servers, and whether that has been passed on. */
  readonly #unused = new Map<string, { readonly due: number; readonly isTold: boolean }>();

  constructor(options: UnusedPoolsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timer = new DueTimer(
      async () => this.#work(),
      () => this.#next(),
      this.#clock,
    );
  }

  /** The pool is not used; the first time counts. */
  note(key: string): void {
    if (this.#unused.has(key)) return;
    const due = this.#clock.monotonic() + REST_MS;
    this.#unused.set(key, { due, isTold: false });
    this.#timer.wakeAt(due);
  }

  /** It is used again, or has no servers any more. */
  forget(key: string): void {
    this.#unused.delete(key);
  }

  isDue(key: string): boolean {
    return this.#unused.get(key)?.isTold === true;
  }

  close(): void {
    this.#timer.close();
  }

  #work(): void {
    const now = this.#clock.monotonic();
    const keys = [...this.#unused].filter(([, { due, isTold }]) => !isTold && due <= now).map(([key]) => key);
    const isTold = !this.#options.isWaiting();
    for (const key of keys) this.#unused.set(key, { due: now + REST_MS, isTold });
    if (isTold && keys.length > 0) this.#options.onDue(keys);
  }

  #next(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { due, isTold } of this.#unused.values()) if (!isTold) next = Math.min(next, due);
    return next;
  }
}
