// Starts the processes of the demonstration and ends all of them. Each has its own session, so that Ctrl-C reaches only the
// demonstration, which then ends the others in order.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

const running = new Set<ChildProcess>();

/** A script of this directory needs `process.execPath` and an `ipc` channel. */
export function start(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(program, args, { detached: true, ...options });
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.once('error', () => running.delete(child));
  return child;
}

/** Resolves with the next message. `name` is for the error. Errors: the process ends before. */
export async function nextMessage(child: ChildProcess, name: string): Promise<unknown> {
  const waiting = new AbortController();
  const { signal } = waiting;
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error(`${name} has ended unexpectedly`);
  });
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended]);
    return message;
  } finally {
    waiting.abort();
  }
}

/** Sends SIGTERM, and SIGKILL if the process has not ended after `patienceMs`. */
export async function end(child: ChildProcess, patienceMs: number): Promise<void> {
  if (!running.has(child)) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await Promise.race([exited, delay(patienceMs, undefined, { ref: false })]);
  if (!running.has(child)) return;
  child.kill('SIGKILL');
  await exited;
}

/** Kills all running processes. */
export async function endAll(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }),
  );
}
