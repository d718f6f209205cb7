// When the next reload may begin: one interval after the last reload while reloads are few, later if they continue,
// because each costs a start of HAProxy and delays new connections. Pure, except for two numbers.

/** The interval of continuing reloads, as a multiple of the duration of one: docs/design/decisions/0021-reload-pace.md. */
const SPACING = 20;
/** The longest interval, as a multiple of the configured one. */
const MAX_INTERVALS = 5;
/** After a rest, so many reloads follow at the configured interval before it grows. */
const BURST = 2;

export class ReloadPace {
  /** Duration of the last reload, milliseconds. */
  #tookMs = 0;
  /** When the next reload would be due if all so far had kept the longer interval. */
  #spacedUntil = 0;

  /** Milliseconds from `lastEnd`, the end of the last reload, to the next one. */
  rest(lastEnd: number, interval: number): number {
    const spacing = this.#spacing(interval);
    const ahead = (BURST - 1) * spacing;
    return Math.min(spacing, Math.max(interval, this.#spacedUntil - ahead - lastEnd));
  }

  /** A reload has ended. */
  reloaded(began: number, ended: number, interval: number): void {
    this.#tookMs = ended - began;
    this.#spacedUntil = Math.max(this.#spacedUntil + this.#tookMs, ended) + this.#spacing(interval);
  }

  #spacing(interval: number): number {
    return Math.min(MAX_INTERVALS * interval, Math.max(interval, SPACING * this.#tookMs));
  }
}
