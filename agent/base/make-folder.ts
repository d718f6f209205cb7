// A folder, with those above it, as far as it is not there yet.

import { mkdir } from 'node:fs/promises';
import { HeadgateError } from './errors.ts';

/** `mode` is that of each folder that is made. Errors: FILE_WRITE, retry later. */
export async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode });
  } catch (cause) {
    throw new HeadgateError('FILE_WRITE', `Cannot make folder "${path}"`, { retry: 'later', cause });
  }
}
