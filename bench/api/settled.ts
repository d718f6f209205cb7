// Waits until a process has done what follows from what happened to it: statuses, files, deletions.

import type { Running } from '../support/processes.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

/**
 * Milliseconds, and of them those of processor time: 0.4 %. An agent that has nothing to do uses less but for its audits,
 * one that still tells ten Events a second 1 to 3 %.
 */
const LOOK = 5_000;
const LITTLE = 20;
/** Milliseconds for what an agent has to tell of 1,000 new Services: twenty statuses a second, ten Events, two of each. */
export const STATUSES = 240_000;

/** Resolves after a look with no more than LITTLE, and at the latest after `most` milliseconds. */
export async function settled({ pid }: Pick<Running, 'pid'>, most = 30_000): Promise<void> {
  const end = performance.now() + most;
  let before = processorTime(pid);
  do {
    const last = before;
    await pause(LOOK);
    before = processorTime(pid);
    if (before - last <= LITTLE) return;
  } while (performance.now() < end);
}
