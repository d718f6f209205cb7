// Starts a daemon detached: it is nobody's child in spirit, outlives the agent, and writes its messages to a file of its
// own. Finds it again by the pid file that it writes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { type ErrorCode, HeadgateError } from '../base/errors.ts';
import { logSince } from './daemon-output.ts';
import { isShortage } from './shortage.ts';

export interface DetachedOptions {
  /** The file to which its messages are appended. */
  readonly log: string;
  readonly env: NodeJS.ProcessEnv;
  /** The code of the error where the program cannot be started. */
  readonly missing: ErrorCode;
}

export interface DetachedProcess {
  readonly child: ChildProcess;
  /** How it has ended; undefined while it runs. */
  readonly ended: () => string | undefined;
  /** What it has written to its log by now. */
  readonly said: () => Promise<string>;
}

/** Returns once the program runs; it may still end at once. Errors: `missing`. */
export async function startDetached(
  [program, args]: readonly [program: string, args: readonly string[]],
  { log: path, env, missing }: DetachedOptions,
): Promise<DetachedProcess> {
  const log = await open(path, 'a', 0o600);
  const from = (await log.stat()).size;
  const child = spawn(program, args, { detached: true, stdio: ['ignore', log.fd, log.fd], env });
  let ended: string | undefined;
  child.once('exit', (code, signal) => {
    ended = signal === null ? `exit status ${code}` : `signal ${signal}`;
  });
  try {
    await once(child, 'spawn');
  } catch (cause) {
    throw new HeadgateError(missing, `Cannot start "${program}"`, { retry: 'later', cause });
  } finally {
    await log.close();
  }
  child.unref();
  return { child, ended: () => ended, said: () => logSince(path, from) };
}

/**
 * The pid in a pid file, if that process was started with this configuration file. Errors: FILE_READ if a shortage
 * leaves it unknown: a live process must not be taken for gone.
 */
export async function pidIn(pidFile: string, config: string): Promise<number | undefined> {
  try {
    const pid = Number.parseInt(await readFile(pidFile, 'utf8'), 10);
    return (await runsWith(pid, config)) ? pid : undefined;
  } catch (cause) {
    if (!isShortage(cause)) return undefined;
    throw new HeadgateError('FILE_READ', `Cannot tell which process "${pidFile}" names`, { cause });
  }
}

/** Whether this process runs and was started with this configuration file. Errors: FILE_READ, as pidIn(). */
export async function runsWith(pid: number, config: string): Promise<boolean> {
  if (!(pid > 1)) return false;
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').includes(config);
  } catch (cause) {
    if (!isShortage(cause)) return false;
    throw new HeadgateError('FILE_READ', `Cannot tell whether process ${pid} runs`, { cause });
  }
}
