// A timeout for an answer over a connection that lets Node read first. After a stall of the process Node runs timers
// before it reads, so that an answer that arrived in time would count as late.

export class ReadFirstTimeout {
  readonly #onTimeout: () => void;
  #timer: NodeJS.Timeout | undefined;
  #last: NodeJS.Immediate | undefined;

  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout;
  }

  get isWaiting(): boolean {
    return this.#timer !== undefined;
  }

  /** Starts again if it is waiting already. */
  wait(milliseconds: number): void {
    this.end();
    this.#timer = setTimeout(() => {
      // Node reads sockets between timers and immediates.
      this.#last = setImmediate(() => {
        this.end();
        this.#onTimeout();
      });
    }, milliseconds);
  }

  /** Cancels the timeout. */
  end(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#last);
    this.#timer = undefined;
  }
}
