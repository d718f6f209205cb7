// Runs a program to its end and ends all processes that it has started, including daemons: they inherit a mark in their
// environment. On SIGINT, SIGTERM or SIGHUP it ends them at once, and then this process.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { endMarked, markedProcesses } from './marked-processes.ts';

export interface ProgramRun {
  readonly output: string;
  /** Null if a signal ended the program. */
  readonly exitCode: number | null;
  /** The command lines of processes that the program left running. */
  readonly left: readonly string[];
}

export interface ProgramOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly onOutput?: (text: string) => void;
  readonly onError?: (text: string) => void;
  /** Runs when all processes have ended, also after a signal. */
  readonly afterwards?: () => void;
}

const MARK = 'TEST_RUN';
/** For processes that end soon after the program, such as the workers of a daemon. */
const GRACE_MS = 2_000;
const PAUSE_MS = 20;

/** The marks of the running programs. */
const running = new Set<string>();
let received: NodeJS.Signals | undefined;

/** Does not resolve after a signal. Errors: the program cannot be started. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env = process.env, onOutput, onError, afterwards }: ProgramOptions,
): Promise<ProgramRun> {
  listenForSignals();
  const mark = `${MARK}=${randomUUID()}`;
  const child = spawn(program, args, {
    cwd,
    env: { ...env, [MARK]: mark.slice(MARK.length + 1) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(mark);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    onOutput?.(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => onError?.(text));
  // The pipes close only when no process that the program left behind holds them.
  const left = new Promise<readonly string[]>((resolve) => child.on('exit', () => resolve(endLeft(mark))));
  const closed = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  });
  try {
    return { exitCode: await closed, output, left: await left };
  } finally {
    running.delete(mark);
    afterwards?.();
    await endBySignal();
  }
}

function listenForSignals(): void {
  if (process.listenerCount('SIGTERM') > 0) return;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      received = signal;
      for (const mark of running) void endMarked(mark);
      if (running.size === 0) process.kill(process.pid, signal);
    });
  }
}

/** After a signal, the end of the last program ends this process; until then no caller continues. */
async function endBySignal(): Promise<void> {
  if (received === undefined) return;
  if (running.size === 0) process.kill(process.pid, received);
  await new Promise(() => undefined);
}

async function endLeft(mark: string): Promise<readonly string[]> {
  let left = markedProcesses(mark);
  for (const end = performance.now() + GRACE_MS; left.length > 0 && performance.now() < end; ) {
    if (received !== undefined) break;
    await delay(PAUSE_MS);
    left = markedProcesses(mark);
  }
  await endMarked(mark);
  return left.map(({ command }) => command);
}
