// Finds the master of HAProxy, by its pid file or, where somebody has removed that, by its command line: another HAProxy
// beside one that lives would share its addresses with it, and nobody would tell the first one anything any more.

import { startedWith } from '../../base/started-with.ts';
import { type HaproxyPaths, masterPid } from './process.ts';

/** undefined where none runs with our file. Errors: as masterPid(), and those of /proc, for lack of descriptors. */
export async function findMaster(paths: HaproxyPaths): Promise<number | undefined> {
  const named = await masterPid(paths);
  if (named !== undefined) return named;
  const { config, pidFile } = paths;
  const found = await startedWith((words) => ['-W', config, pidFile].every((word) => words.includes(word)));
  // The master is the parent of a worker, which has the same words.
  return [...found.values()].find((parent) => found.has(parent));
}
