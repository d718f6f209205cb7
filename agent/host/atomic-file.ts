// Writes a file so that a reader, a crash or a full disk sees the old bytes or the new ones, never a part of them:
// a temporary file beside it, fsync, rename, fsync of the folder.

import { closeSync, fsync, openSync } from 'node:fs';
import { copyFile, type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { HeadgateError } from '../base/errors.ts';
import { type FileIdentity, identityOfOpen } from './file-identity.ts';

/**
 * `chunks` are written in their order, text as UTF-8. Gives what the file is from then on, whatever somebody else does
 * to it right after. Errors: FILE_WRITE, retry later; the old file then stands.
 */
export async function writeAtomically(
  path: string,
  chunks: Iterable<string | Buffer>,
  { temporary = `${path}.tmp`, mode = 0o600 } = {},
): Promise<FileIdentity> {
  const written = await writeDurably(temporary, chunks, mode).catch((cause: unknown) =>
    fail(path, temporary, cause),
  );
  await renameDurably(temporary, path);
  return written;
}

/** The second half of it, for what writeDurably() has written. Errors: FILE_WRITE; `temporary` is gone then. */
export async function renameDurably(temporary: string, path: string): Promise<void> {
  try {
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    await fail(path, temporary, cause);
  }
}

/** The same for a copy, which has the mode of what it is taken from. Errors: FILE_WRITE; the old file then stands. */
export async function copyAtomically(from: string, path: string): Promise<FileIdentity> {
  const temporary = `${path}.tmp`;
  const written = await copyDurably(from, temporary).catch((cause: unknown) => fail(path, temporary, cause));
  await renameDurably(temporary, path);
  return written;
}

async function copyDurably(from: string, path: string): Promise<FileIdentity> {
  await copyFile(from, path);
  const file = await open(path, 'r');
  try {
    await file.sync();
    return await identityOfOpen(file);
  } finally {
    await file.close();
  }
}

async function fail(path: string, temporary: string, cause: unknown): Promise<never> {
  await unlink(temporary).catch(() => undefined);
  throw new HeadgateError('FILE_WRITE', `Cannot write "${path}"`, { retry: 'later', cause });
}

/** Writes and flushes, but not under a name that anyone reads. Gives what the file is, by whatever name it gets. */
export async function writeDurably(
  path: string,
  chunks: Iterable<string | Buffer>,
  mode = 0o600,
): Promise<FileIdentity> {
  const file = await open(path, 'w', mode);
  try {
    await writeChunks(file, chunks);
    await file.sync();
    return await identityOfOpen(file);
  } finally {
    await file.close();
  }
}

/** In their order, from where the file is at; text as UTF-8. */
export async function writeChunks(file: FileHandle, chunks: Iterable<string | Buffer>): Promise<void> {
  for (const some of inBatches(chunks)) await writeAll(file, some);
}

/** As many at once as the system takes in one call, and no more than is good to hold. */
const PIECES = 1024;
const BYTES = 2 * 1024 * 1024;

function* inBatches(chunks: Iterable<string | Buffer>): Generator<Buffer[], void, void> {
  let batch: Buffer[] = [];
  let size = 0;
  for (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    if (bytes.length === 0) continue;
    batch.push(bytes);
    size += bytes.length;
    if (batch.length < PIECES && size < BYTES) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}

/** The system may write less than it was given, before it says why at the next attempt. */
async function writeAll(file: FileHandle, pieces: readonly Buffer[]): Promise<void> {
  let rest = pieces;
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest);
    rest = after(rest, bytesWritten);
  }
}

function after(pieces: readonly Buffer[], written: number): readonly Buffer[] {
  let left = written;
  const at = pieces.findIndex(({ length }) => {
    if (left < length) return true;
    left -= length;
    return false;
  });
  const cut = pieces[at];
  return cut === undefined ? [] : [cut.subarray(left), ...pieces.slice(at + 1)];
}

export async function syncFolder(path: string): Promise<void> {
  const folder = openSync(path, 'r');
  try {
    await flush(folder);
  } finally {
    closeSync(folder);
  }
}

/** What waits for the disk goes over the thread pool; what does not costs more there than it takes. */
const flush = promisify(fsync);
