// Starts and ends the processes of a benchmark, each by its own id.

import { type ChildProcess, fork, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Scratch } from './scratch.ts';

export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  /** What it has printed. */
  readonly said: () => string;
  /** SIGTERM, and SIGKILL when that is not enough; resolves when it is gone. */
  readonly stop: () => Promise<void>;
}

/** Ends with the scratch at the latest. */
export function start(
  scratch: Scratch,
  name: string,
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Running {
  const log = scratch.path(`${name}.log`);
  const file = openSync(log, 'a');
  // Ends with us, however we end.
  const command = ['--pdeathsig', 'TERM', program, ...args];
  const child = spawn('setpriv', command, { ...options, stdio: ['ignore', file, file] });
  closeSync(file);
  return running(scratch, program, child, log);
}

/**
 * Another Node with one of our own files, reached by messages. `within`: a command that becomes what follows it. `flags`:
 * of that Node.
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
  return { pid: child.pid ?? 0, child, said: () => readFileSync(log, 'utf8'), stop };
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
