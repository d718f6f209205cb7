// Waits for something that may come over a connection, for so long and no longer. What has come while this process
// had no processor counts as come in time: after a stall timers are called before anything is read.

export class Patience {
  readonly #onOver: () => void;
  #timer: NodeJS.Timeout | undefined;
  #last: NodeJS.Immediate | undefined;

  /** `onOver`: it has not come. */
  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  get isWaiting(): boolean {
    return this.#timer !== undefined;
  }

  /** From now on, whatever was waited for before. */
  wait(milliseconds: number): void {
    this.end();
    this.#timer = setTimeout(() => {
      // All that has arrived by now is read in between.
      this.#last = setImmediate(() => {
        this.end();
        this.#onOver();
      });
    }, milliseconds);
  }

  /** It has come, or is waited for no more. */
  end(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#last);
    this.#timer = undefined;
  }
}
