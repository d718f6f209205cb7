// Does one thing at a time, and again when something has changed meanwhile; what fails is tried again, after waits that
// grow.

import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError } from './errors.ts';

export interface StepsOptions {
  /** True where it has changed anything, upon which the next one waits for `spacing`. */
  readonly step: () => Promise<boolean>;
  readonly onDone: () => void;
  readonly onFailed: (error: unknown) => void;
  /** Milliseconds. */
  readonly spacing: number;
  /** Milliseconds; doubled at each failure, up to the second. What must not be tried again waits for the second at once. */
  readonly backoff: readonly [least: number, most: number];
}

export class Steps {
  readonly #options: StepsOptions;
  #working: Promise<void> | undefined;
  #isDue = false;
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: StepsOptions) {
    this.#options = options;
  }

  get isUnderWay(): boolean {
    return this.#working !== undefined;
  }

  /** Now, or as soon as the step under way is done. Resolves when nothing is due any more. */
  settle(): Promise<void> {
    this.#isDue = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
      if (this.#isDue && !this.#isClosed) void this.settle();
    });
    return this.#working;
  }

  /** Something else has failed, which a step may put right. */
  fail(error: unknown): void {
    const { onFailed, backoff } = this.#options;
    onFailed(error);
    const isFinal = error instanceof HeadgateError && error.retry === 'never';
    const [least, most] = backoff;
    const wait = isFinal ? most : Math.min(most, least * 2 ** this.#failures++);
    clearTimeout(this.#retry);
    if (!this.#isClosed) this.#retry = setTimeout(() => void this.settle(), wait).unref();
  }

  /** Resolves when the step under way is done; there is none after it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#working;
  }

  async #work(): Promise<void> {
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      clearTimeout(this.#retry);
      try {
        const hasChanged = await this.#options.step();
        this.#failures = 0;
        this.#options.onDone();
        if (hasChanged) await delay(this.#options.spacing);
      } catch (error) {
        this.fail(error);
      }
    }
  }
}
