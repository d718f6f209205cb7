// A folder, with those above it, as far as it is not there yet.

import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../base/errors.ts';

/** `mode` is that of each folder that is made. Errors: FILE_WRITE, retry later. */
export async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await make(path, mode);
  } catch (cause) {
    throw new HeadgateError('FILE_WRITE', `Cannot make folder "${path}"`, { retry: 'later', cause });
  }
}

/** Not by mkdir's `recursive`, which tries for ever where a folder that is there takes no others, as /proc. */
async function make(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await make(dirname(path), mode);
    // Somebody else may have been faster.
    await mkdir(path, { mode }).catch((again: NodeJS.ErrnoException) => {
      if (again.code !== 'EEXIST') throw again;
    });
  }
}
