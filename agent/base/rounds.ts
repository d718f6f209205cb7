// Repeats work for as long as the agent runs: each round begins a fixed time after the end of the one before, so that
// slow rounds never overlap. Owns its timer; keeps no process alive.

import { type Clock, systemClock } from './clock.ts';

export interface RoundsOptions {
  /** Milliseconds from the end of a round to the begin of the next; read again before each. */
  readonly intervalMs: () => number;
  readonly work: () => void | Promise<void>;
  /** The work threw or rejected; the next round comes all the same. */
  readonly onFailed: (error: unknown) => void;
  readonly clock?: Clock;
}

export class Rounds {
  readonly #options: RoundsOptions;
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;
  #round: Promise<void> | undefined;
  #isOpen = false;

  constructor(options: RoundsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The first round comes after one interval. */
  start(): void {
    this.#isOpen = true;
    this.#schedule();
  }

  /** A round at once, or the one that is under way. Resolves at its end; never rejects. */
  now(): Promise<void> {
    this.#round ??= this.#work().finally(() => {
      this.#round = undefined;
      this.#schedule();
    });
    return this.#round;
  }

  /** The interval has changed: counts from now. */
  retime(): void {
    if (this.#round === undefined) this.#schedule();
  }

  /** No round begins any more. */
  close(): void {
    this.#isOpen = false;
    this.#cancel?.();
  }

  #schedule(): void {
    this.#cancel?.();
    if (this.#isOpen) this.#cancel = this.#clock.after(this.#options.intervalMs(), () => void this.now());
  }

  async #work(): Promise<void> {
    this.#cancel?.();
    try {
      await this.#options.work();
    } catch (error) {
      this.#options.onFailed(error);
    }
  }
}
