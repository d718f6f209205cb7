// Cuts long work into slices, so that an endpoint change waits for one slice at most.

/** How long one slice holds the event loop, unless the caller chooses. */
const SLICE_MS = 4;

export class Slice {
  readonly #lengthMs: number;
  #began = performance.now();

  constructor(lengthMs: number = SLICE_MS) {
    this.#lengthMs = lengthMs;
  }

  /** True if the slice is used up, so that the caller must `await breathe()`. */
  get isOver(): boolean {
    return performance.now() - this.#began >= this.#lengthMs;
  }

  /** Lets the event loop do everything that waits, then begins a new slice. */
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
