// The HAProxy of the tests for another user: copies a HAProxy of the version matrix, which is in the home of the user who
// unpacked it.

import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { haproxyExecutable } from './haproxy.ts';

const run = promisify(execFile);

/** Returns the path. A copy goes into `directory`, which other users may enter. */
export async function reachableHaproxy(directory: string): Promise<string> {
  if (!haproxyExecutable.startsWith('/') || (await isForAll(dirname(haproxyExecutable)))) {
    return haproxyExecutable;
  }
  const copy = join(directory, 'program');
  // A link is cheap but cannot cross file systems.
  const linked = await run('cp', ['-rl', dirname(haproxyExecutable), copy]).catch(() => undefined);
  if (linked === undefined) await run('cp', ['-r', dirname(haproxyExecutable), copy]);
  return join(copy, 'haproxy');
}

async function isForAll(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  return (mode & 0o1) !== 0 && (folder === '/' || isForAll(dirname(folder)));
}
