// Limits the wait for a condition. A busy machine delays both the test and the work that it waits for, so the deadline
// counts the checks as well as the time.

/** On a busy machine the deadline is at most this many timeouts away. */
const STRETCH = 4;

export class Deadline {
  readonly #timeout: number;
  readonly #looks: number;
  readonly #now: () => number;
  readonly #begin: number;
  #looked = 0;

  /** Both in milliseconds. `interval` is the time of a check and the pause after it on an idle machine. */
  constructor(timeout: number, interval: number, now = () => performance.now()) {
    this.#timeout = timeout;
    this.#looks = timeout / interval;
    this.#now = now;
    this.#begin = now();
  }

  /** Callers must read it once after each check. */
  get isOver(): boolean {
    this.#looked++;
    const passed = this.#now() - this.#begin;
    return passed >= this.#timeout && (this.#looked >= this.#looks || passed >= STRETCH * this.#timeout);
  }
}
