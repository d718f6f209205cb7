// Brings something to its desired state: runs one step at a time, once more if something changed during it, and
// retries what failed after waits that grow. Owns its timers; keeps no process alive.

import { backoffMs } from './backoff.ts';
import { type Clock, systemClock } from './clock.ts';
import { HeadgateError } from './errors.ts';

export interface ReconcilerOptions {
  /** True if it changed anything: the next step then waits for `spacingMs`. */
  readonly step: () => Promise<boolean>;
  readonly onDone: () => void;
  readonly onFailed: (error: unknown) => void;
  readonly spacingMs: number;
  /** An error that must not be retried (`retry: 'never'`) waits for `mostMs` at once. */
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

  /** Now, or as soon as the step under way has ended. Resolves when nothing is due any more; never rejects. */
  reconcile(): Promise<void> {
    this.#isDue = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
      if (this.#isDue && !this.#isClosed) void this.reconcile();
    });
    return this.#working;
  }

  /** Something else failed that a step may repair: reports it and retries. */
  fail(error: unknown): void {
    const { onFailed, backoff } = this.#options;
    onFailed(error);
    const isFinal = error instanceof HeadgateError && error.retry === 'never';
    const wait = isFinal ? backoff.mostMs : backoffMs(++this.#failures, backoff);
    this.#cancelRetry?.();
    if (!this.#isClosed) this.#cancelRetry = this.#clock.after(wait, () => void this.reconcile());
  }

  /** Resolves when the step under way has ended; none follows. */
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
        if (hasChanged) await new Promise<void>((resolve) => this.#clock.after(spacingMs, resolve));
      } catch (error) {
        this.fail(error);
      }
    }
  }
}
