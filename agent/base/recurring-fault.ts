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

export class RecurringFault {
  readonly #options: RecurringFaultOptions;
  readonly #clock: Clock;
  /** The parts that meet it. */
  readonly #parts = new Set<string>();
  /** Reported in the period under way. */
  readonly #causes = new Set<string>();
  #failures = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RecurringFaultOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Another `cause` is reported at once, another text of the same cause is not. */
  failed(part: string, cause: string, text: string): void {
    this.#parts.add(part);
    this.#failures++;
    const now = this.#clock.monotonic();
    if (now - this.#reportedAt >= PERIOD_MS) this.#causes.clear();
    else if (this.#causes.has(cause)) return;
    if (this.#causes.size === 0) this.#reportedAt = now;
    this.#causes.add(cause);
    this.#options.onReport(text, this.#failures);
    this.#failures = 0;
  }

  worked(part: string): void {
    if (!this.#parts.delete(part) || this.#parts.size > 0) return;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
    this.#causes.clear();
    this.#failures = 0;
    this.#options.onOver();
  }
}
