// Waits until a condition holds.

import { setTimeout as delay } from 'node:timers/promises';
import { Deadline } from './deadline.ts';

interface UntilOptions {
  readonly seconds?: number;
  /** What is there instead, for the message of the error. */
  readonly seen?: () => unknown;
}

/** Checks every 10 ms. Errors: the condition does not hold after `seconds`, or later on a busy machine. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { seconds = 30, seen = () => '' }: UntilOptions = {},
): Promise<void> {
  for (const deadline = new Deadline(seconds * 1_000, 30); !(await holds()); await delay(10))
    if (deadline.isOver) throw new Error(`Not within ${seconds} s: ${what} ${String(seen())}`);
}
