// Waits until a condition holds.

import { Deadline } from './deadline.ts';

interface UntilOptions {
  readonly seconds?: number;
  /** What is there instead, for the message of the error. */
  readonly seen?: () => unknown;
}

/** Checks again and again. Errors: the condition does not hold after `seconds`, or later on a busy machine. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { seconds = 30, seen = () => '' }: UntilOptions = {},
): Promise<void> {
  for (const deadline = new Deadline(seconds * 1_000, 30); !(await holds()); await deadline.pause())
    if (deadline.isOver) throw new Error(`Not within ${seconds} s: ${what} ${String(seen())}`);
}
