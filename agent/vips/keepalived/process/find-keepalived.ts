// Finds keepalived's processes: by the pid file, or by the command line if another process has removed or changed that.
// Finds a second keepalived with the same files as well.

import { readFile, readlink } from 'node:fs/promises';
import { startedWith } from '../../../host/started-with.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { ageOf, keepalivedPid } from './process.ts';

/** A keepalived that starts beside another one ends within this time, if it finds that one's pid files. */
const START_MS = 3_000;

/** The parent process; undefined if none runs. Errors: FILE_READ, and those of /proc, for lack of descriptors. */
export async function findKeepalived(paths: KeepalivedPaths): Promise<number | undefined> {
  const named = await keepalivedPid(paths);
  if (named !== undefined) return named;
  // The child has the same command line.
  const found = await startedWithFiles(paths);
  return [...found.values()].find((parent) => found.has(parent));
}

/** The process that speaks VRRP, which is the only child of the parent process; undefined if there is none. */
export async function vrrpProcess(parent: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8').catch(() => '');
  const pid = Number.parseInt(children, 10);
  return pid > 0 ? pid : undefined;
}

/**
 * The processes of another keepalived than `parent`, in its network namespace and with the same files; none that has
 * just started. Errors: as findKeepalived().
 */
export async function secondKeepalived(paths: KeepalivedPaths, parent: number): Promise<readonly number[]> {
  const found = await startedWithFiles(paths);
  const network = await networkOf(parent);
  const second: number[] = [];
  for (const [pid, itsParent] of found) {
    if (pid === parent || itsParent === parent) continue;
    if ((await networkOf(pid)) === network && (await ageOf(pid)) >= START_MS) second.push(pid);
  }
  return second;
}

/** The network namespace of a process; '' if it is gone. */
function networkOf(pid: number): Promise<string> {
  return readlink(`/proc/${pid}/ns/net`).catch(() => '');
}

/** The processes that were started with our file and pid file, each with its parent. */
function startedWithFiles({ config, pidFile }: KeepalivedPaths): Promise<ReadonlyMap<number, number>> {
  // A shell that starts it has the same words, and is none; the loader by which one with libraries of its own runs is it.
  const isProgram = (word = ''): boolean => /(^|\/)(keepalived|ld-linux[^/]*)$/.test(word);
  return startedWith((words) => isProgram(words[0]) && words.includes(config) && words.includes(pidFile));
}
