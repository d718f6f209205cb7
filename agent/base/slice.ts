// Cuts long work into slices, so that an endpoint change never waits for more than one of them.

import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds that one slice may hold the event loop, unless said otherwise. */
const SLICE = 4;
/** Milliseconds of a slice of what can wait, of whatever length, while HAProxy may want the same processor. */
export const BESIDE_TRAFFIC = 0.5;
/** Milliseconds of a pause: as short as a timer can be. */
const PAUSE = 1;

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

  /** The same, and leaves the processor to others for a moment: to HAProxy, which may wait for it. */
  async pause(): Promise<void> {
    await delay(PAUSE);
    this.#began = performance.now();
  }
}
