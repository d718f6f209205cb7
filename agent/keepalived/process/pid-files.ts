// Keeps the pid files of keepalived true. It writes them once, when it starts: where they are lost nobody finds it any
// more, and a second one beside it would hold the same addresses. Finds such a second one, which no pid file names.

import { readlink, writeFile } from 'node:fs/promises';
import { startedWith } from '../../base/started-with.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { ageOf, keepalivedPid } from './process.ts';

/** Milliseconds in which it writes them itself; it does not start where somebody else has. */
const YOUTH = 3_000;

/**
 * Looks for keepalived where a pid file does not name it, and writes the files again; true where that was done. `known`
 * is the pid of one that had them. Errors: FILE_READ, and those of /proc, for lack of descriptors.
 */
export async function mendPidFiles(paths: KeepalivedPaths, known: number): Promise<boolean> {
  const named = [await keepalivedPid(paths), await keepalivedPid({ ...paths, pidFile: paths.vrrpPidFile })];
  if (!named.includes(undefined)) return false;
  const found = await running(paths);
  const child = [...found].find(([, parent]) => found.has(parent));
  if (child === undefined) return false;
  const [pid, parent] = child;
  if (parent !== known && (await ageOf(parent)) < YOUTH) return false;
  try {
    for (const [file, number] of [
      [paths.pidFile, parent],
      [paths.vrrpPidFile, pid],
    ] as const)
      await writeFile(file, `${number}\n`, { mode: 0o644 });
    return true;
  } catch {
    return false;
  }
}

/**
 * The processes of keepalived beside the one that the pid files name, in its network namespace and with the same files.
 * None where the files do not name one, or where one is so young that it may be about to end. Errors: as mendPidFiles().
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
