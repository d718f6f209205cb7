// Creates a folder and its missing parents.

import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../base/errors.ts';

/** `mode` is that of each created folder. Errors: FILE_WRITE. */
export async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await make(path, mode);
  } catch (cause) {
    throw new HeadgateError('FILE_WRITE', `Cannot create folder "${path}"`, { retry: 'later', cause });
  }
}

/** Without mkdir's `recursive`, which never returns below a folder that allows no new folders, such as /proc. */
async function make(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await make(dirname(path), mode);
    // Another call may have created it in the meantime.
    await mkdir(path, { mode }).catch((again: NodeJS.ErrnoException) => {
      if (again.code !== 'EEXIST') throw again;
    });
  }
}
