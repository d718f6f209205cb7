// Waits until a process has finished its work after changes: statuses, files, deletions.

import type { Running } from '../support/processes.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

/** A process is at rest if it uses at most this much processor time in a period. Writing ten Events a second uses more. */
const PERIOD_MS = 5_000;
const REST_MS = 20;
/** For an agent to write the statuses and Events of 1,000 new Services, Events at ten a second. */
export const STATUSES_MS = 240_000;

/** Resolves after a period of rest, and at the latest after `most` milliseconds. */
export async function settled({ pid }: Pick<Running, 'pid'>, most = 30_000): Promise<void> {
  const end = performance.now() + most;
  let before = processorTime(pid);
  do {
    const last = before;
    await pause(PERIOD_MS);
    before = processorTime(pid);
    if (before - last <= REST_MS) return;
  } while (performance.now() < end);
}
