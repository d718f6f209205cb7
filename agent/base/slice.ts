// Cuts long work into slices, so that an endpoint change never waits for more than one of them.

/** One slice may hold the event loop for so long. */
const SLICE_MS = 4;

export class Slice {
  readonly #length: number;
  #began = performance.now();

  constructor(length: number = SLICE_MS) {
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

/**
 * Gives a function that removes and handles each key of the set, in slices, and those that are added in the meantime.
 * Its promise resolves when the set is empty; a call during the work joins it.
 */
export function handleInSlices(keys: Set<string>, handle: (key: string) => void): () => Promise<void> {
  let working: Promise<void> | undefined;
  const work = async (): Promise<void> => {
    const slice = new Slice();
    await slice.breathe();
    for (const key of keys) {
      keys.delete(key);
      handle(key);
      if (slice.isOver) await slice.breathe();
    }
    working = undefined;
  };
  return () => {
    working ??= work();
    return working;
  };
}
