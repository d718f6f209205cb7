// When the next write of haproxy.cfg may begin: soon where changes are few, less and less often where they never end,
// because each write is of the whole file. Holds two numbers; the clock comes in.

/** Milliseconds from the first change to the write. */
const SOON = 800;
/** After a write; each one that others wait for at its end is twice as long as the one before. */
const SHORTEST_REST = 1_000;
const LONGEST_REST = 5_000;
/** A rest is at least so many times as long as the write: the bigger the file, the more changes it has to be worth. */
const REST = 50;

export class WritePace {
  #rest = SHORTEST_REST;
  #restsUntil = Number.NEGATIVE_INFINITY;

  /** Milliseconds from now, when something has changed, to the write. */
  delay(now: number): number {
    const left = this.#restsUntil - now;
    // Nobody waited when the last rest was over.
    if (left <= 0) this.#rest = SHORTEST_REST;
    return Math.max(SOON, left);
  }

  /** A write begins: what changes meanwhile waits for the next one. */
  begins(now: number): void {
    this.#restsUntil = now + this.#rest;
  }

  /** A write is done. */
  wrote(began: number, ended: number): void {
    const rest = Math.max(this.#rest, REST * (ended - began));
    this.#restsUntil = ended + Math.min(LONGEST_REST, rest);
    this.#rest = Math.min(LONGEST_REST, 2 * this.#rest);
  }
}
