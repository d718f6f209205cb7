// Finds the master of HAProxy, by its pid file or, where somebody has removed that, by its command line: another HAProxy
// beside one that lives would share its addresses with it, and nobody would tell the first one anything any more.

import { readFile } from 'node:fs/promises';
import { leadsGroup, startedWith } from '../../host/started-with.ts';
import type { HaproxyPaths } from '../paths.ts';
import { masterPid } from './process.ts';

/** undefined where none runs with our file. Errors: as masterPid(), and those of /proc, for lack of descriptors. */
export async function findMaster(paths: HaproxyPaths): Promise<number | undefined> {
  const named = await masterPid(paths);
  if (named !== undefined) return named;
  const found = await ours(paths);
  // The master is the parent of a worker, which has the same words.
  return [...found.values()].find((parent) => found.has(parent));
}

/**
 * Whether one that the agent, or the one before it, has started still reads its file: it has neither a pid file nor a
 * worker then, and a signal that asks for a reload would end it. Errors: those of /proc.
 */
export async function isBooting(paths: HaproxyPaths): Promise<boolean> {
  // A worker whose master is gone does not lead the group that it was started in.
  for (const pid of (await ours(paths)).keys()) if (await leadsGroup(pid)) return true;
  return false;
}

/**
 * Whether one of its workers has listened yet, where nobody else does at our sockets: from 3.1 on a master has a pid file
 * and a worker while that one still reads its file, and a signal that asks for a reload would end both. The kernel keeps
 * the name under which a socket was bound, HAProxy's own with an ending, also where its file is gone. True where the
 * kernel does not say.
 */
export async function hasListened(
  pid: number,
  { adminSocket }: Pick<HaproxyPaths, 'adminSocket'>,
): Promise<boolean> {
  const sockets = await readFile(`/proc/${pid}/net/unix`, 'utf8').catch(() => undefined);
  return sockets === undefined || sockets.includes(` ${adminSocket}`);
}

/** Each with its parent. */
function ours({ config, pidFile }: HaproxyPaths): Promise<ReadonlyMap<number, number>> {
  return startedWith((words) => ['-W', config, pidFile].every((word) => words.includes(word)));
}
