// Runs asynchronous work one piece at a time, in the order of the calls.

export interface Serial {
  /** Resolves or rejects as `work` does; later work runs also after a failure. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when all work of earlier calls has ended. Never rejects. */
  idle(): Promise<void>;
}

export function serial(): Serial {
  let last: Promise<void> = Promise.resolve();
  return {
    run(work) {
      const turn = last.then(work);
      last = turn.then(
        () => undefined,
        () => undefined,
      );
      return turn;
    },
    idle: () => last,
  };
}
