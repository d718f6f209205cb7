// Calls work when the earliest of many due times has come. One call at a time; owns its timer.

import { type Clock, systemClock } from './clock.ts';

export class DueTimer {
  readonly #work: () => Promise<void>;
  readonly #nextDue: () => number;
  readonly #clock: Clock;
  #due = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #isWorking = false;
  #isClosed = false;

  /** `work` must not reject. After it `nextDue` gives the next due time by `clock.monotonic()`, or Infinity. */
  constructor(work: () => Promise<void>, nextDue: () => number, clock: Clock = systemClock) {
    this.#work = work;
    this.#nextDue = nextDue;
    this.#clock = clock;
  }

  /** Calls `work` at this time, unless it is due earlier. Ignored during the work, after which `nextDue` decides. */
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
    await this.#work();
    this.#isWorking = false;
    // Read only now: a result of the work could be older than a call of wakeAt() that was ignored.
    this.wakeAt(this.#nextDue());
  }
}
