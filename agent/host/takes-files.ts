// Proves that a folder takes new files: that it is there and writable, and that its file system has room for one more.

import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError } from '../base/errors.ts';

/** Makes a file in the folder and removes it. Errors: FILE_WRITE. */
export async function proveNewFiles(folder: string): Promise<void> {
  const path = join(folder, `.proof-${process.pid}`);
  try {
    await rm(path, { force: true });
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile('\n');
    } finally {
      await file.close();
      await rm(path, { force: true });
    }
  } catch (cause) {
    throw new HeadgateError('FILE_WRITE', `The folder "${folder}" takes no new file`, {
      retry: 'later',
      cause,
    });
  }
}
