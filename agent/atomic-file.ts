// Writes a file so that a reader, a crash or a full disk sees the old bytes or the new ones, never a part of them:
// a temporary file beside it, fsync, rename, fsync of the folder.

import { open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from './errors.ts';

/** `chunks` are written in their order, mode 0600. Errors: FILE_WRITE, retry later; the old file then stands. */
export async function writeAtomically(
  path: string,
  chunks: Iterable<string>,
  temporary = `${path}.tmp`,
): Promise<void> {
  try {
    await writeDurably(temporary, chunks);
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    await unlink(temporary).catch(() => undefined);
    throw new HeadgateError('FILE_WRITE', `Cannot write "${path}"`, { retry: 'later', cause });
  }
}

/** Writes and flushes, but not under a name that anyone reads. */
export async function writeDurably(path: string, chunks: Iterable<string>): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    for (const chunk of chunks) await file.writeFile(chunk);
    await file.sync();
  } finally {
    await file.close();
  }
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
