// A timeout for what comes over a connection: everything that has arrived by then is read first. After a stall of this
// process Node calls timers before it reads, so that an answer in time would otherwise count as late.

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

  /** From now on; ends a wait before it. */
  wait(milliseconds: number): void {
    this.end();
    this.#timer = setTimeout(() => {
      // Node reads in between.
      this.#last = setImmediate(() => {
        this.end();
        this.#onTimeout();
      });
    }, milliseconds);
  }

  /** It has come, or it is no longer waited for. */
  end(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#last);
    this.#timer = undefined;
  }
}
