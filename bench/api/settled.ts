// Waits until a process has done what follows from what happened to it: statuses, files, deletions.

import type { Running } from '../support/processes.ts';
import { pause, until } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

/** Resolves after a second and a half with less than 3 % of a core. */
export async function settled({ pid }: Pick<Running, 'pid'>): Promise<void> {
  const rests = async (): Promise<boolean> => {
    const before = processorTime(pid);
    await pause(1_500);
    return processorTime(pid) - before <= 40;
  };
  await until('It has settled', rests, { most: 180_000 });
}
