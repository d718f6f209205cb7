// Repeats work while the agent runs: each round begins a fixed time after the end of the last one, so that rounds never
// overlap. Owns its timer, which does not keep the process alive.

import { type Clock, systemClock } from './clock.ts';

export interface RoundsOptions {
  /** From the end of a round to the begin of the next; read before each round. */
  readonly intervalMs: () => number;
  readonly work: () => void | Promise<void>;
  /** The work threw or rejected; the next round follows as usual. */
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

  /** Begins a round unless one is under way. Resolves at the end of the round; never rejects. */
  now(): Promise<void> {
    this.#round ??= this.#work().finally(() => {
      this.#round = undefined;
      this.#schedule();
    });
    return this.#round;
  }

  /** The interval has changed: waits for the new interval from now. */
  retime(): void {
    if (this.#round === undefined) this.#schedule();
  }

  /** No further round begins. */
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
