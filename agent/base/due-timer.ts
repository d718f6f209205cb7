// Calls work when the earliest of many due times has come. One call at a time; owns its timer.

import { type Clock, systemClock } from './clock.ts';

export class DueTimer {
  readonly #work: () => Promise<number>;
  readonly #clock: Clock;
  #due = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #isWorking = false;
  #isClosed = false;

  /** `work` must not reject; it resolves with the next due time by `clock.monotonic()`, or Infinity. */
  constructor(work: () => Promise<number>, clock: Clock = systemClock) {
    this.#work = work;
    this.#clock = clock;
  }

  /** Calls `work` at this time, unless it is due earlier. While it runs, its result decides. */
  wakeAt(due: number): void {
    if (this.#isClosed || this.#isWorking || due >= this.#due) return;
    this.#cancel?.();
    this.#due = due;
    this.#cancel = this.#clock.after(due - this.#clock.monotonic(), () => void this.#run());
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  async #run(): Promise<void> {
    this.#isWorking = true;
    this.#due = Number.POSITIVE_INFINITY;
    const next = await this.#work();
    this.#isWorking = false;
    this.wakeAt(next);
  }
}
