// Limits the wait for a condition. A busy machine delays both the test and the work that it waits for, so the deadline
// counts the checks as well as the time. Also pauses between checks.

import { setTimeout as delay } from 'node:timers/promises';

/** On a busy machine the deadline is at most this many timeouts away. */
const STRETCH = 4;
/** Milliseconds. */
const MOST_PAUSE = 300;

export class Deadline {
  readonly #timeout: number;
  readonly #looks: number;
  readonly #now: () => number;
  readonly #begin: number;
  #looked = 0;
  #pausedAt: number;

  /** Both in milliseconds. `interval` is the time of a check and the pause after it on an idle machine. */
  constructor(timeout: number, interval: number, now = () => performance.now()) {
    this.#timeout = timeout;
    this.#looks = timeout / interval;
    this.#now = now;
    this.#begin = now();
    this.#pausedAt = this.#begin;
  }

  /** Callers must read it once after each check. */
  get isOver(): boolean {
    this.#looked++;
    const passed = this.#now() - this.#begin;
    return passed >= this.#timeout && (this.#looked >= this.#looks || passed >= STRETCH * this.#timeout);
  }

  /** For as long as the check took, so that waiting takes at most half a processor from what is waited for. */
  async pause(least = 10): Promise<void> {
    await delay(Math.min(MOST_PAUSE, Math.max(least, this.#now() - this.#pausedAt)));
    this.#pausedAt = this.#now();
  }
}
