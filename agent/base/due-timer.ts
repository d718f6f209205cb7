// Works when something is due: a timer for the earliest time, and one run of the work at a time. Owns the timer, which
// does not keep the process alive.

import { type Clock, systemClock } from './clock.ts';

export interface DueTimerOptions {
  /** Must not reject. */
  readonly work: () => Promise<void>;
  /** Read after the work: when the next work is due, by the monotonic clock; Infinity for never. */
  readonly nextDue: () => number;
  readonly clock?: Clock;
}

export class DueTimer {
  readonly #options: DueTimerOptions;
  /** When the timer fires. */
  #wakes = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #isWorking = false;
  #isClosed = false;

  constructor(options: DueTimerOptions) {
    this.#options = options;
  }

  /** Works at this time, by the monotonic clock, unless an earlier time is set. Ignored during the work. */
  wakeAt(due: number): void {
    if (this.#isClosed || this.#isWorking || due >= this.#wakes) return;
    const { clock = systemClock } = this.#options;
    this.#cancel?.();
    this.#wakes = due;
    this.#cancel = clock.after(due - clock.monotonic(), () => void this.#work());
  }

  /** No further work begins. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    this.#wakes = Number.POSITIVE_INFINITY;
    await this.#options.work();
    this.#isWorking = false;
    this.wakeAt(this.#options.nextDue());
  }
}
