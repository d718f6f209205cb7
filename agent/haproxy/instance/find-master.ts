// Finds the master process of HAProxy. A second HAProxy beside a live one would share its addresses, and the agent would
// no longer control the first.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { findDaemon, leadsGroup, runsWith, startedWith } from '../../host/daemon/find.ts';
import type { InstanceFiles } from './files.ts';

/** undefined if no HAProxy runs with this file. Errors: as findDaemon(). */
export function findMaster(paths: InstanceFiles): Promise<number | undefined> {
  return findDaemon(paths, isStartedWith(paths));
}

/**
 * True if a started HAProxy still reads its file: it has no pid file and no worker yet, and the signal for a reload
 * would end it. Errors: as startedWith().
 */
export async function isBooting(paths: InstanceFiles): Promise<boolean> {
  // A worker without a master does not lead the process group that it was started in.
  for (const pid of (await startedWith(isStartedWith(paths))).keys()) if (await leadsGroup(pid)) return true;
  return false;
}

/** All processes of the HAProxy with these files, also one that still reads its file. Errors: as startedWith(). */
export async function ownProcesses(paths: InstanceFiles): Promise<readonly number[]> {
  return [...(await startedWith(isStartedWith(paths))).keys()];
}

/**
 * True if a worker of this master has listened, provided that no other process listens on these sockets. From 3.1 on a
 * master has a pid file and a worker while the worker still reads its file, and the signal for a reload would end both.
 * The kernel keeps the name of a bound socket, with a suffix of HAProxy's, after its file is gone. True if the kernel
 * gives no list.
 */
export async function hasListened(
  pid: number,
  { adminSocket }: Pick<InstanceFiles, 'adminSocket'>,
): Promise<boolean> {
  const sockets = await readFile(`/proc/${pid}/net/unix`, 'utf8').catch(() => undefined);
  return sockets === undefined || sockets.includes(` ${adminSocket}`);
}

/**
 * Processes of a HAProxy that an operator started with this file beside the one of this worker: it takes part of the
 * connections, and its members never change. Errors: as startedWith().
 */
export async function strangers(
  { config }: Pick<InstanceFiles, 'config'>,
  workerPid: number,
): Promise<readonly number[]> {
  const found = await startedWith((words) => {
    const at = words.indexOf(config);
    const isHaproxy = words.slice(0, at).some((word) => basename(word).startsWith('haproxy'));
    return isHaproxy && words[at - 1] === '-f' && !words.includes('-c');
  });
  const parent = found.get(workerPid);
  if (parent === undefined) return [];
  const own = found.has(parent) ? parent : workerPid;
  return [...found].flatMap(([pid, by]) => (pid === own || by === own || found.has(by) ? [] : [pid]));
}

/**
 * A master with this pid file and another configuration file, such as that of an agent with another state folder: nothing
 * that this agent writes reaches it. undefined if there is none. Errors: as startedWith().
 */
export async function otherMaster({
  config,
  pidFile,
}: InstanceFiles): Promise<{ readonly pid: number; readonly config: string } | undefined> {
  let others = '';
  const found = await startedWith((words) => {
    const file = words[words.indexOf('-f') + 1] ?? '';
    const isOther = ['-W', '-f', pidFile].every((word) => words.includes(word)) && file !== config;
    if (isOther) others = file;
    return isOther;
  });
  const pid = [...found.values()].find((parent) => found.has(parent));
  return pid === undefined ? undefined : { pid, config: others };
}

/** True if the process was started with this pid file, as the agent and its units start HAProxy. Errors: as runsWith(). */
export function isOwn(pid: number, { pidFile }: Pick<InstanceFiles, 'pidFile'>): Promise<boolean> {
  return runsWith(pid, pidFile);
}

function isStartedWith({ config, pidFile }: InstanceFiles): (words: readonly string[]) => boolean {
  return (words) => ['-W', config, pidFile].every((word) => words.includes(word));
}
