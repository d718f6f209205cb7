// When to give up asking again and again. A machine that leaves a test without the processor leaves what the test waits
// for without it, too: so it is not time alone that counts, but also how often there was a look in it.

/** How many times longer than `timeout` there may be looks at most. */
const STRETCH = 4;

export class Deadline {
  readonly #timeout: number;
  readonly #looks: number;
  readonly #now: () => number;
  readonly #begin: number;
  #looked = 0;

  /** `timeout` and `interval` in milliseconds: a look takes no longer than this, with the pause after it, unless the machine is busy. */
  constructor(timeout: number, interval: number, now = () => performance.now()) {
    this.#timeout = timeout;
    this.#looks = timeout / interval;
    this.#now = now;
    this.#begin = now();
  }

  /** To be asked once after each look. */
  get isOver(): boolean {
    this.#looked++;
    const passed = this.#now() - this.#begin;
    return passed >= this.#timeout && (this.#looked >= this.#looks || passed >= STRETCH * this.#timeout);
  }
}
