// Brings something to its desired state: runs one step at a time, runs it again if a change came in the meantime, and
// retries a failed step with backoff. Owns its timers, which do not keep the process alive.

import { backoffMs } from './backoff.ts';
import { type Clock, passed, systemClock } from './clock.ts';
import { HeadgateError } from './errors.ts';

export interface ReconcilerOptions {
  /** Resolves to true if it changed anything: the next step then waits for `spacingMs`. */
  readonly step: () => Promise<boolean>;
  readonly onDone: () => void;
  readonly onFailed: (error: unknown) => void;
  readonly spacingMs: number;
  /** After an error with `retry: 'never'` the wait is `mostMs` at once. */
  readonly backoff: { readonly firstMs: number; readonly mostMs: number };
  readonly clock?: Clock;
}

export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #clock: Clock;
  #working: Promise<void> | undefined;
  #isDue = false;
  #failures = 0;
  #cancelRetry: (() => void) | undefined;
  #isClosed = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get isUnderWay(): boolean {
    return this.#working !== undefined;
  }

  /** Runs a step now, or after the step under way. Resolves when nothing is due any more; never rejects. */
  reconcile(): Promise<void> {
    this.#isDue = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
      if (this.#isDue && !this.#isClosed) void this.reconcile();
    });
    return this.#working;
  }

  /** Reports a failure outside a step and schedules a step that may repair it. */
  fail(error: unknown): void {
    const { onFailed, backoff } = this.#options;
    onFailed(error);
    const isFinal = error instanceof HeadgateError && error.retry === 'never';
    const wait = isFinal ? backoff.mostMs : backoffMs(++this.#failures, backoff);
    this.#cancelRetry?.();
    if (!this.#isClosed) this.#cancelRetry = this.#clock.after(wait, () => void this.reconcile());
  }

  /** Resolves when the step under way has ended; no further step begins. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { step, onDone, spacingMs } = this.#options;
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      this.#cancelRetry?.();
      try {
        const hasChanged = await step();
        this.#failures = 0;
        onDone();
        if (hasChanged) await passed(this.#clock, spacingMs);
      } catch (error) {
        this.fail(error);
      }
    }
  }
}
