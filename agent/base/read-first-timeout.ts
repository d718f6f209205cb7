// A timeout for an answer over a connection that lets Node read first. After a stall of the process Node runs timers
// before it reads, so that an answer that arrived in time would count as late.

import { type Clock, systemClock } from './clock.ts';

export class ReadFirstTimeout {
  readonly #onTimeout: () => void;
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;
  #last: NodeJS.Immediate | undefined;

  constructor(onTimeout: () => void, clock: Clock = systemClock) {
    this.#onTimeout = onTimeout;
    this.#clock = clock;
  }

  get isWaiting(): boolean {
    return this.#cancel !== undefined;
  }

  /** Starts again if it is waiting already. */
  wait(milliseconds: number): void {
    this.end();
    this.#cancel = this.#clock.after(milliseconds, () => {
      // Node reads sockets between timers and immediates.
      this.#last = setImmediate(() => {
        this.end();
        this.#onTimeout();
      });
    });
  }

  /** Cancels the timeout. */
  end(): void {
    this.#cancel?.();
    clearImmediate(this.#last);
    this.#cancel = undefined;
  }
}
