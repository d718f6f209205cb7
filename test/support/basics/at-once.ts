// Bounds how many tests of a file are at work at once: tests with agents mostly wait, but too many of them take the processors from
// one another.

import type { ExecutionContext } from 'ava';

type Holder = Pick<ExecutionContext, 'teardown'>;

/** Resolves when the test may continue; it holds its place until its end, whatever it starts in the meantime. */
export function atOnce(most: number): (t: Holder) => Promise<void> {
  const turns = new WeakMap<Holder, Promise<void>>();
  const waiting: (() => void)[] = [];
  let taken = 0;
  const begin = async (t: Holder): Promise<void> => {
    if (taken < most) taken += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    t.teardown(() => {
      const next = waiting.shift();
      if (next === undefined) taken -= 1;
      else next();
    });
  };
  return (t) => {
    const turn = turns.get(t) ?? begin(t);
    turns.set(t, turn);
    return turn;
  };
}
