// The HAProxy of the tests where another user must be able to run it: one of the version matrix lies in the home of
// whoever unpacked it, and is then copied.

import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { haproxyExecutable } from './haproxy.ts';

const run = promisify(execFile);

/** Gives its path; a copy goes into `directory`, which others may enter. */
export async function reachableHaproxy(directory: string): Promise<string> {
  if (!haproxyExecutable.startsWith('/') || (await isForAll(dirname(haproxyExecutable)))) {
    return haproxyExecutable;
  }
  const copy = join(directory, 'program');
  // Links cost nothing, but do not lead to another file system.
  const linked = await run('cp', ['-rl', dirname(haproxyExecutable), copy]).catch(() => undefined);
  if (linked === undefined) await run('cp', ['-r', dirname(haproxyExecutable), copy]);
  return join(copy, 'haproxy');
}

async function isForAll(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  return (mode & 0o1) !== 0 && (folder === '/' || isForAll(dirname(folder)));
}
