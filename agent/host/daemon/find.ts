// Finds a daemon that this agent or an earlier one has started: by the pid file that the daemon writes, or by its command
// line if another process has removed that file.

import { constants } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { HeadgateError } from '../../base/errors.ts';
import { SAFELY } from '../safe-open.ts';
import { isShortage } from '../shortage.ts';

/** Two files that a daemon has on its command line. */
export interface DaemonFiles {
  readonly config: string;
  readonly pidFile: string;
}

/**
 * The parent process of a daemon whose children have the same command line; undefined if it does not run. `matches`
 * gets command lines. Errors: FILE_READ, and those of startedWith().
 */
export async function findDaemon(
  files: DaemonFiles,
  matches: (words: readonly string[]) => boolean,
): Promise<number | undefined> {
  const named = await pidIn(files.pidFile, files.config);
  if (named !== undefined) return named;
  const found = await startedWith(matches);
  return [...found.values()].find((parent) => found.has(parent));
}

/**
 * The pid in a pid file, if that process runs with this configuration file. Errors: FILE_READ if the agent lacks
 * descriptors or memory to look, because a live process must not count as gone.
 */
export async function pidIn(pidFile: string, config: string): Promise<number | undefined> {
  try {
    const pid = Number.parseInt(
      await readFile(pidFile, { encoding: 'utf8', flag: constants.O_RDONLY | SAFELY }),
      10,
    );
    return (await runsWith(pid, config)) ? pid : undefined;
  } catch (cause) {
    if (!isShortage(cause)) return undefined;
    throw new HeadgateError('FILE_READ', `Cannot read the pid file "${pidFile}"`, { cause });
  }
}

/** True if this process runs and has this file on its command line. Errors: FILE_READ, as pidIn(). */
export async function runsWith(pid: number, file: string): Promise<boolean> {
  if (!(pid > 1)) return false;
  try {
    return (await textOf(`/proc/${pid}/cmdline`)).split('\0').includes(file);
  } catch (cause) {
    throw new HeadgateError('FILE_READ', `Cannot check if process ${pid} runs`, { cause });
  }
}

/**
 * The processes of the agent's process namespace with matching command lines, and the parent of each; none of a
 * container. Errors: those of reading /proc without descriptors or memory, because a live process must not count as gone.
 */
export async function startedWith(
  matches: (words: readonly string[]) => boolean,
): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = (await textOf(`/proc/${pid}/cmdline`)).split('\0');
    if (!matches(words)) continue;
    const status = await textOf(`/proc/${pid}/status`);
    // One number for each process namespace, from the one of this /proc inwards.
    if (/^NSpid:\s+\d+\s+\d/m.test(status)) continue;
    found.set(Number(pid), Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0));
  }
  return found;
}

/** True if the process leads its process group, as a detached process does, instead of being forked in it. */
export async function leadsGroup(pid: number): Promise<boolean> {
  return Number((await statOf(pid))[GROUP]) === pid;
}

/** Milliseconds since a process was started; 0 if it is gone. */
export async function ageOf(pid: number): Promise<number> {
  const started = (await statOf(pid))[START_TIME];
  if (started === undefined) return 0;
  const [uptimeSeconds] = (await textOf('/proc/uptime')).split(' ');
  return Math.round(Number(uptimeSeconds) * 1000 - Number(started) * 10);
}

/** Places in what statOf() gives; the start time is in hundredths of a second. */
const GROUP = 2;
const START_TIME = 19;

/** The fields of proc(5) from the third: those after the name, which may contain anything. */
async function statOf(pid: number): Promise<readonly string[]> {
  const text = await textOf(`/proc/${pid}/stat`);
  return text === '' ? [] : (text.split(') ').at(-1)?.split(' ') ?? []);
}

/** '' if the process has ended, or if the agent may not read it. */
async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isShortage(error)) throw error;
    return '';
  }
}
