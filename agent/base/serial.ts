// Runs asynchronous work one piece at a time, in the order in which it was given.

export interface Serial {
  /** Resolves or rejects as `work` does; work that fails does not hold up what follows. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when all that was given so far has ended. Never rejects. */
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
