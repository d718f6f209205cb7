// Waits until a process has done what follows from what happened to it: statuses, files, deletions.

import type { Running } from '../support/processes.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

/** Milliseconds of processor time in one and a half seconds: 1 %. An agent that writes statuses and Events uses 2 to 3 %. */
const LITTLE = 15;

/** Resolves after a second and a half with no more than LITTLE, and at the latest after `most` milliseconds. */
export async function settled({ pid }: Pick<Running, 'pid'>, most = 30_000): Promise<void> {
  const end = performance.now() + most;
  let before = processorTime(pid);
  do {
    const last = before;
    await pause(1_500);
    before = processorTime(pid);
    if (before - last <= LITTLE) return;
  } while (performance.now() < end);
}
