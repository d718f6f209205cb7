// Waiting for something to become true, with an end.

import { setTimeout as delay } from 'node:timers/promises';

/** Asks every `every` milliseconds; throws `what` where it does not become true within `most` milliseconds. */
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
