// The processes that the demonstration starts, so that none of them outlives it. Each has a session of its own: Ctrl-C
// reaches the demonstration alone, which then ends the others in order, by their ids.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

const running = new Set<ChildProcess>();

/** Starts a program; a script of this directory with `process.execPath` and an `ipc` channel. */
export function start(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(program, args, { detached: true, ...options });
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.once('error', () => running.delete(child));
  return child;
}

/** Resolves with the next message of it; fails where it ends before. `what` says who it is. */
export async function nextMessage(child: ChildProcess, what: string): Promise<unknown> {
  const waiting = new AbortController();
  const { signal } = waiting;
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error(`${what} has ended by itself`);
  });
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended]);
    return message;
  } finally {
    waiting.abort();
  }
}

/** Ends one: SIGTERM, and SIGKILL where that does not do within `patience` milliseconds. */
export async function end(child: ChildProcess, patience: number): Promise<void> {
  if (!running.has(child)) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await Promise.race([exited, delay(patience, undefined, { ref: false })]);
  if (!running.has(child)) return;
  child.kill('SIGKILL');
  await exited;
}

/** Ends all that still run, without ceremony. */
export async function endAll(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }),
  );
}
