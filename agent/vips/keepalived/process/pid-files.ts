// Keeps the pid files of keepalived true. It writes them once, when it starts: where they are lost nobody finds it any
// more, and a second one beside it would hold the same addresses. Finds such a second one, which no pid file names.

import { readlink } from 'node:fs/promises';
import { writeAtomically } from '../../../host/atomic-file.ts';
import { startedWith } from '../../../host/started-with.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { ageOf, keepalivedPid } from './process.ts';

/** Milliseconds in which it writes them itself; it does not start where somebody else has. */
const YOUTH = 3_000;

export interface FoundKeepalived {
  /** Its parent process; 0 where none runs. */
  readonly pid: number;
  /** Its pid files were written again. */
  readonly isMended: boolean;
}

/**
 * Finds keepalived by its pid files, or by its command line where they do not name it, and writes them again then. `known`
 * is the pid that it had. It comes from one look: a pid file may be lost again between two of them, and one that lives
 * must not be taken for gone. Errors: FILE_READ, and those of /proc, for lack of descriptors.
 */
export async function findKeepalived(paths: KeepalivedPaths, known: number): Promise<FoundKeepalived> {
  const parent = await keepalivedPid(paths);
  const child = await keepalivedPid({ ...paths, pidFile: paths.vrrpPidFile });
  if (parent !== undefined && child !== undefined) return { pid: parent, isMended: false };
  const found = await running(paths);
  const own = parent ?? known;
  const pairs = [...found].filter(([, each]) => found.has(each));
  const ownPair = pairs.find(([, each]) => each === own);
  // It may be about to start another child.
  if (ownPair === undefined && found.has(own)) return { pid: own, isMended: false };
  const pair = ownPair ?? pairs[0];
  if (pair === undefined) return { pid: parent ?? 0, isMended: false };
  const [vrrp, pid] = pair;
  if (pid !== known && (await ageOf(pid)) < YOUTH) return { pid: parent ?? 0, isMended: false };
  return { pid, isMended: await writePidFiles(paths, pid, vrrp) };
}

async function writePidFiles(paths: KeepalivedPaths, parent: number, child: number): Promise<boolean> {
  try {
    await writeAtomically(paths.pidFile, [`${parent}\n`], { mode: 0o644 });
    await writeAtomically(paths.vrrpPidFile, [`${child}\n`], { mode: 0o644 });
    return true;
  } catch {
    return false;
  }
}

/**
 * The processes of keepalived beside the one that the pid files name, in its network namespace and with the same files.
 * None where the files do not name one, or where one is so young that it may be about to end. Errors: as findKeepalived().
 */
export async function secondKeepalived(paths: KeepalivedPaths): Promise<readonly number[]> {
  const named = await keepalivedPid(paths);
  if (named === undefined) return [];
  const found = await running(paths);
  const isNamed = (pid: number): boolean => pid === named || (found.has(pid) && isNamed(found.get(pid) ?? 0));
  const network = await networkOf(named);
  const second: number[] = [];
  for (const pid of found.keys())
    if (!isNamed(pid) && (await networkOf(pid)) === network && (await ageOf(pid)) >= YOUTH) second.push(pid);
  // A start that came between would have made the one that was named the second.
  return (await keepalivedPid(paths)) === named ? second : [];
}

/** The network namespace of a process; '' where it is gone. */
function networkOf(pid: number): Promise<string> {
  return readlink(`/proc/${pid}/ns/net`).catch(() => '');
}

/** The processes that were started with our file and pid file, each with its parent. */
function running({ config, pidFile }: KeepalivedPaths): Promise<ReadonlyMap<number, number>> {
  // A shell that starts it has the same words, and is none; the loader by which one with libraries of its own runs is it.
  const isProgram = (word = ''): boolean => /(^|\/)(keepalived|ld-linux[^/]*)$/.test(word);
  return startedWith((words) => isProgram(words[0]) && words.includes(config) && words.includes(pidFile));
}
