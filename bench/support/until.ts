// Waits for a condition, with a time limit.

import { setTimeout as delay } from 'node:timers/promises';

/** Checks every `every` milliseconds. Errors: the condition is still false after `most` milliseconds. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  { every = 5, most = 30_000 } = {},
): Promise<void> {
  const end = performance.now() + most;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${most} ms`);
    await delay(every);
  }
}

export async function pause(milliseconds: number): Promise<void> {
  await delay(milliseconds);
}
