// A fault that many parts meet at the same time and again and again, such as an API server that is away: it is reported
// once, and then at most once a minute with the number of failures.

import { type Clock, systemClock } from './clock.ts';

export interface RecurringFaultOptions {
  /** `failures`: since the last report. */
  readonly onReport: (text: string, failures: number) => void;
  /** All parts that met it work again. */
  readonly onOver: () => void;
  readonly clock?: Clock;
}

const PERIOD_MS = 60_000;
/** Different texts that are reported in one period. */
const MAX_TEXTS = 3;

export class RecurringFault {
  readonly #options: RecurringFaultOptions;
  readonly #clock: Clock;
  /** The parts that meet it. */
  readonly #parts = new Set<string>();
  /** Reported in the period under way. */
  readonly #texts = new Set<string>();
  #failures = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RecurringFaultOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  failed(part: string, text: string): void {
    this.#parts.add(part);
    this.#failures++;
    const now = this.#clock.monotonic();
    if (now - this.#reportedAt >= PERIOD_MS) this.#texts.clear();
    else if (this.#texts.has(text) || this.#texts.size === MAX_TEXTS) return;
    if (this.#texts.size === 0) this.#reportedAt = now;
    this.#texts.add(text);
    this.#options.onReport(text, this.#failures);
    this.#failures = 0;
  }

  worked(part: string): void {
    if (!this.#parts.delete(part) || this.#parts.size > 0) return;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
    this.#texts.clear();
    this.#failures = 0;
    this.#options.onOver();
  }
}
