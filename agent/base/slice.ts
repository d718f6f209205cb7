// Cuts long work into slices, so that an endpoint change never waits for more than one of them.

/** Milliseconds that one slice may hold the event loop, unless said otherwise. */
const SLICE = 4;

export class Slice {
  readonly #length: number;
  #began = performance.now();

  constructor(length: number = SLICE) {
    this.#length = length;
  }

  /** True where the slice is used up and the caller must `await breathe()`. */
  get isOver(): boolean {
    return performance.now() - this.#began >= this.#length;
  }

  /** Lets everything that waits go first. */
  async breathe(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#began = performance.now();
  }
}
