// Starts and ends the processes of a benchmark, each by its own pid.

import { type ChildProcess, fork, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Scratch } from './scratch.ts';

export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  /** All that the process has printed. */
  readonly output: () => string;
  /** Sends SIGTERM, then SIGKILL if the process continues; resolves when it has ended. */
  readonly stop: () => Promise<void>;
}

/** The process ends with the scratch at the latest. */
export function start(
  scratch: Scratch,
  name: string,
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Running {
  const log = scratch.path(`${name}.log`);
  const file = openSync(log, 'a');
  // The kernel ends it if the benchmark dies.
  const command = ['--pdeathsig', 'TERM', program, ...args];
  const child = spawn('setpriv', command, { ...options, stdio: ['ignore', file, file] });
  closeSync(file);
  return running(scratch, program, child, log);
}

/**
 * Starts another Node with a module of the benchmarks, and talks to it with messages. `within` is a command that executes
 * the words after it; `flags` are for Node.
 */
export function startModule(
  scratch: Scratch,
  name: string,
  module: URL,
  args: readonly string[] = [],
  within: readonly string[] = [],
  flags: readonly string[] = [],
): Running & { readonly ask: <T>(question: object) => Promise<T> } {
  const log = scratch.path(`${name}.log`);
  const file = openSync(log, 'a');
  const [execPath = process.execPath, ...execArgv] = [...within, process.execPath, ...flags];
  const child = fork(module, args, { execPath, execArgv, stdio: ['ignore', file, file, 'ipc'] });
  closeSync(file);
  const ask = <T>(question: object): Promise<T> =>
    new Promise((resolve, reject) => {
      const onMessage = (answer: unknown): void => {
        child.off('exit', onExit);
        resolve(answer as T);
      };
      const onExit = (): void => {
        child.off('message', onMessage);
        reject(new Error(`${name} has ended:\n${readFileSync(log, 'utf8')}`));
      };
      if (child.exitCode !== null || !child.connected) return onExit();
      child.once('message', onMessage).once('exit', onExit);
      child.send(question);
    });
  return { ...running(scratch, name, child, log), ask };
}

function running(scratch: Scratch, program: string, child: ChildProcess, log: string): Running {
  child.on('error', (error) => console.error(`${program}: ${error.message}`));
  const stop = (): Promise<void> => ended(child);
  scratch.defer(stop);
  return { pid: child.pid ?? 0, child, output: () => readFileSync(log, 'utf8'), stop };
}

/** Resolves with `work`. Errors: the process ends before. */
export function beforeItsEnd<T>({ child, output }: Running, work: Promise<T>): Promise<T> {
  const ending = new Promise<never>((_, reject) => {
    child.once('exit', () => reject(new Error(`The process has ended:\n${output()}`)));
  });
  return Promise.race([work, ending]);
}

export async function ended(child: ChildProcess): Promise<void> {
  for (const [signal, patience] of [
    ['SIGTERM', 10_000],
    ['SIGKILL', 5_000],
  ] as const) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await Promise.race([exit, delay(patience, undefined, { ref: false })]);
  }
}
