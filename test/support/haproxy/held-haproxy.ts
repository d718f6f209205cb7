// A script around the real HAProxy whose processes wait before they read their file, while a test holds them. It shows
// what happens in the middle of a start or a reload.

import { chmod, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processesOf } from '../host/agent.ts';
import { haproxyExecutable } from './haproxy.ts';

/** Writes the script into `directory` and returns its path. A reload executes it again, unless `isBehindScript`. */
export async function heldHaproxy(directory: string): Promise<string> {
  const path = join(directory, 'held-haproxy');
  await writeFile(
    path,
    `#!/bin/bash
case " $* " in *" -W "*) while [ -e '${holdOf(directory)}' ]; do sleep 0.05; done ;; esac
exec -a "$0" '${haproxyExecutable}' "$@"
`,
  );
  await chmod(path, 0o755);
  return path;
}

/** From now on starts and reloads wait for `release`. */
export function hold(directory: string): Promise<void> {
  return writeFile(holdOf(directory), '');
}

export function release(directory: string): Promise<void> {
  return unlink(holdOf(directory));
}

/** Whether a process waits for `release`. */
export async function isHeld(directory: string): Promise<boolean> {
  const names = processesOf(directory).map((pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => ''));
  return (await Promise.all(names)).some((name) => name.startsWith('held-haproxy'));
}

function holdOf(directory: string): string {
  return join(directory, 'hold');
}
