// Limits the wait for a condition. A busy machine delays both the test and the work that it waits for, so the deadline
// counts the checks as well as the time. Also pauses between checks.

import { setTimeout as delay } from 'node:timers/promises';

/** On a busy machine the deadline is at most this many timeouts away. */
const STRETCH = 4;
/** A pause is this part of the wait so far: most of the checks of a long wait find what the one before found. */
const SHARE = 1 / 25;
/** Milliseconds. */
const MOST_PAUSE = 300;

export class Deadline {
  readonly #timeout: number;
  readonly #interval: number;
  readonly #now: () => number;
  readonly #begin: number;
  /** The time that the checks and pauses so far would have taken on an idle machine. */
  #counted = 0;
  #pausedAt: number;

  /** Both in milliseconds. `interval` is the time of a check and the shortest pause after it on an idle machine. */
  constructor(timeout: number, interval: number, now = () => performance.now()) {
    this.#timeout = timeout;
    this.#interval = interval;
    this.#now = now;
    this.#begin = now();
    this.#pausedAt = this.#begin;
  }

  /** Callers must read it once after each check. */
  get isOver(): boolean {
    this.#counted += this.#interval;
    const passed = this.#now() - this.#begin;
    return passed >= this.#timeout && (this.#counted >= this.#timeout || passed >= STRETCH * this.#timeout);
  }

  /** At least as long as the check took, so that waiting takes at most half a processor from what is waited for. */
  async pause(least = 10): Promise<void> {
    const now = this.#now();
    const wanted = Math.max(least, now - this.#pausedAt, SHARE * (now - this.#begin));
    const pause = Math.min(MOST_PAUSE, wanted);
    this.#counted += Math.max(0, pause - least);
    await delay(pause);
    this.#pausedAt = this.#now();
  }
}
