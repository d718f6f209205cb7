// When the next reload may begin: an interval after the last one where reloads are few, later where they go on and on,
// because each one costs a start of HAProxy and lets new connections wait. Holds two numbers; the clock comes in.

/** Where reloads go on and on they are so many times as far apart as one takes: docs/design/decisions/0021-reload-pace.md. */
const SPACING = 20;
/** No further apart than so many intervals. */
const MOST_INTERVALS = 5;
/** Reloads that may come an interval apart after a rest, before they are spaced further. */
const BURST = 2;

export class ReloadPace {
  /** Milliseconds that the last reload took. */
  #took = 0;
  /** When the next reload would be due if all so far had been spaced. */
  #spacedUntil = 0;

  /** Milliseconds from `lastEnd`, the end of the last reload, to the next one. */
  rest(lastEnd: number, interval: number): number {
    const spacing = this.#spacing(interval);
    const ahead = (BURST - 1) * spacing;
    return Math.min(spacing, Math.max(interval, this.#spacedUntil - ahead - lastEnd));
  }

  /** A reload is done. */
  reloaded(began: number, ended: number, interval: number): void {
    this.#took = ended - began;
    this.#spacedUntil = Math.max(this.#spacedUntil + this.#took, ended) + this.#spacing(interval);
  }

  #spacing(interval: number): number {
    return Math.min(MOST_INTERVALS * interval, Math.max(interval, SPACING * this.#took));
  }
}
