// What is lingering: nothing needs it any more, and it may go a second later, because a request may be on its way to it. Owns a
// timer.
// Why: docs/design/decisions/0066-unused-pools.md

import { type Clock, systemClock } from '../../base/clock.ts';
import { DueTimer } from '../../base/due-timer.ts';

export interface LingeringOptions {
  /** Gets the keys of what may go now, each once. */
  readonly onDue: (keys: readonly string[]) => void;
  /** While true nothing may go: all wait a second more. */
  readonly isWaiting?: () => boolean;
  readonly clock?: Clock;
}

const REST_MS = 1_000;

export class Lingering {
  readonly #options: LingeringOptions;
  readonly #clock: Clock;
  readonly #timer: DueTimer;
  /** By key: when it may go; true once that has been reported. */
  readonly #due = new Map<string, number | true>();

  constructor(options: LingeringOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timer = new DueTimer(
      async () => this.#work(),
      () => this.#next(),
      this.#clock,
    );
  }

  /** It is not needed; the first time counts. */
  note(key: string, restMs = REST_MS): void {
    if (this.#due.has(key)) return;
    const due = this.#clock.monotonic() + restMs;
    this.#due.set(key, due);
    this.#timer.wakeAt(due);
  }

  /** It is needed again, or is gone. */
  forget(key: string): void {
    this.#due.delete(key);
  }

  /** True if it may go. */
  isDue(key: string): boolean {
    return this.#due.get(key) === true;
  }

  close(): void {
    this.#timer.close();
  }

  #work(): void {
    const now = this.#clock.monotonic();
    const keys = [...this.#due].filter(([, due]) => due !== true && due <= now).map(([key]) => key);
    const isWaiting = this.#options.isWaiting?.() === true;
    for (const key of keys) this.#due.set(key, isWaiting ? now + REST_MS : true);
    if (!isWaiting && keys.length > 0) this.#options.onDue(keys);
  }

  #next(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const due of this.#due.values()) if (due !== true) next = Math.min(next, due);
    return next;
  }
}
