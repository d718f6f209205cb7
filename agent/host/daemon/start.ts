// Starts a daemon in its own session, so that it outlives the agent, with its messages in a file, and waits until it
// serves.
// Why: docs/design/decisions/0035-daemon-kit-without-a-checked-file.md

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { sleep } from '../../base/clock.ts';
import { type ErrorCode, HeadgateError } from '../../base/errors.ts';
import { logSince } from '../daemon-output.ts';
import { SAFELY } from '../safe-open.ts';

/** A daemon as errors and the log report it. */
export interface DaemonKind {
  /** As within a sentence: `keepalived`, `the log writer`. */
  readonly name: string;
  /** The program cannot be started. */
  readonly missing: ErrorCode;
  /** It ends during its start, does not serve in time, or the agent may not signal it. */
  readonly failed: ErrorCode;
}

/** `T`: what shows that the daemon serves, such as a connection to it. */
export interface DaemonStart<T> {
  readonly command: readonly [program: string, args: readonly string[]];
  readonly env?: NodeJS.ProcessEnv;
  /** The file that gets its messages. */
  readonly log: string;
  /** The descriptor that gets its standard output, if that is not for messages. */
  readonly output?: number;
  /** undefined while the daemon does not serve. */
  readonly find: () => Promise<T | undefined>;
  readonly timeoutMs: number;
  /** Selects what the error shows of the daemon's messages. */
  readonly excerpt: (messages: string) => string;
}

const POLL_INTERVAL_MS = 10;
export const TO_APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | SAFELY;

/**
 * Resolves with the process and the first result of `find`. Errors: `missing`; `failed` with the daemon's messages,
 * `retry: 'now'` if it still runs; those of `find`.
 */
export async function startDaemon<T>(
  kind: DaemonKind,
  start: DaemonStart<T>,
): Promise<{ readonly child: ChildProcess; readonly found: T }> {
  const { command, env = process.env, find, timeoutMs, excerpt } = start;
  const log = await open(start.log, TO_APPEND, 0o600);
  const from = (await log.stat()).size;
  const stdio = ['ignore' as const, start.output ?? log.fd, log.fd];
  const child = spawn(...command, { detached: true, stdio, env });
  let end: string | undefined;
  child.once('exit', (code, signal) => {
    end = signal === null ? `exit status ${code}` : `signal ${signal}`;
  });
  try {
    await once(child, 'spawn');
  } catch (cause) {
    throw new HeadgateError(kind.missing, `Cannot start "${command[0]}"`, { retry: 'later', cause });
  } finally {
    await log.close();
  }
  child.unref();
  for (const until = performance.now() + timeoutMs; ; await sleep(POLL_INTERVAL_MS)) {
    const found = await find();
    if (found !== undefined) return { child, found };
    if (end === undefined && performance.now() <= until) continue;
    const why = end === undefined ? `does not serve after ${timeoutMs} ms` : `ended with ${end}`;
    const message = `${atBegin(kind)} ${why}\n${excerpt(await logSince(start.log, from))}`;
    throw new HeadgateError(kind.failed, message, { retry: end === undefined ? 'now' : 'later' });
  }
}

/** The daemon's name at the begin of a sentence. */
export function atBegin({ name }: DaemonKind): string {
  return name.replace(/^the /, 'The ');
}
