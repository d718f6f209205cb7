// Starts a daemon in its own session, so that it outlives the agent, with its messages in a file. Finds a daemon again by
// the pid file that it writes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { type ErrorCode, HeadgateError } from '../base/errors.ts';
import { logSince } from './daemon-output.ts';
import { isShortage } from './shortage.ts';

export interface DetachedOptions {
  /** The file that gets its messages. */
  readonly log: string;
  readonly env: NodeJS.ProcessEnv;
  /** The code of the error if the program cannot be started. */
  readonly missing: ErrorCode;
}

export interface DetachedProcess {
  readonly child: ChildProcess;
  /** Its exit status or signal; undefined while it runs. */
  readonly ended: () => string | undefined;
  /** Its messages so far. */
  readonly said: () => Promise<string>;
}

/** Resolves when the program has started; it may still exit at once. Errors: `missing`. */
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
 * The pid in a pid file, if that process runs with this configuration file. Errors: FILE_READ if the agent lacks
 * descriptors or memory to look, because a live process must not count as gone.
 */
export async function pidIn(pidFile: string, config: string): Promise<number | undefined> {
  try {
    const pid = Number.parseInt(await readFile(pidFile, 'utf8'), 10);
    return (await runsWith(pid, config)) ? pid : undefined;
  } catch (cause) {
    if (!isShortage(cause)) return undefined;
    throw new HeadgateError('FILE_READ', `Cannot read the pid file "${pidFile}"`, { cause });
  }
}

/** True if this process runs and has this configuration file on its command line. Errors: FILE_READ, as pidIn(). */
export async function runsWith(pid: number, config: string): Promise<boolean> {
  if (!(pid > 1)) return false;
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').includes(config);
  } catch (cause) {
    if (!isShortage(cause)) return false;
    throw new HeadgateError('FILE_READ', `Cannot check if process ${pid} runs`, { cause });
  }
}
