// Replaces a file so that a reader, or a crash, finds the old content or the new, never a part of it: writes a temporary
// file beside it, then fsync, rename, fsync of the folder. Temporary files are always new ones: another user who may write
// in the folder could have put a link or a pipe at their names.

import {
  closeSync,
  constants,
  fsync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { copyFile, type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { HeadgateError } from '../base/errors.ts';
import { type FileIdentity, identityOfOpen } from './file-identity.ts';

/**
 * `chunks` are written in order, text as UTF-8. Returns the identity of the new file, also if another process replaces it
 * right after. Errors: FILE_WRITE; the old file is then unchanged.
 */
export async function writeAtomically(
  path: string,
  chunks: Iterable<string | Buffer>,
  { mode = 0o600 } = {},
): Promise<FileIdentity> {
  const temporary = `${path}.tmp`;
  const written = await writeDurably(temporary, chunks, mode).catch((cause: unknown) =>
    fail(path, temporary, cause),
  );
  await renameDurably(temporary, path);
  return written;
}

/** undefined if the file cannot be read, such as one that does not exist. */
export function contentOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}

/**
 * As writeAtomically(), for a small file in memory that is of no use after a crash of the machine: not flushed, and synchronous,
 * because the thread pool takes longer than the write. Errors: FILE_WRITE.
 */
export function replaceInMemory(path: string, text: string, mode: number): void {
  const temporary = `${path}.tmp`;
  try {
    rmSync(temporary, { force: true });
    writeFileSync(temporary, text, { mode, flag: 'wx' });
    renameSync(temporary, path);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw new HeadgateError('FILE_WRITE', `Cannot write "${path}"`, { retry: 'later', cause });
  }
}

/** The content of such a file; undefined if it cannot be read. */
export function contentInMemory(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Renames a file of writeDurably(). Errors: FILE_WRITE; `temporary` is then removed. */
export async function renameDurably(temporary: string, path: string): Promise<void> {
  try {
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    await fail(path, temporary, cause);
  }
}

/** Replaces `path` by a copy of `from`, mode included. Errors: FILE_WRITE; the old file is then unchanged. */
export async function copyAtomically(from: string, path: string): Promise<FileIdentity> {
  const temporary = `${path}.tmp`;
  const written = await copyDurably(from, temporary).catch((cause: unknown) => fail(path, temporary, cause));
  await renameDurably(temporary, path);
  return written;
}

async function copyDurably(from: string, path: string): Promise<FileIdentity> {
  await rm(path, { force: true });
  await copyFile(from, path, constants.COPYFILE_EXCL);
  const file = await open(path, 'r');
  try {
    await file.sync();
    return await identityOfOpen(file);
  } finally {
    await file.close();
  }
}

async function fail(path: string, temporary: string, cause: unknown): Promise<never> {
  await rm(temporary, { force: true }).catch(() => undefined);
  throw new HeadgateError('FILE_WRITE', `Cannot write "${path}"`, { retry: 'later', cause });
}

/** Writes and flushes a file that renameDurably() gives its name later. Returns its identity. Errors: any. */
export async function writeDurably(
  path: string,
  chunks: Iterable<string | Buffer>,
  mode = 0o600,
): Promise<FileIdentity> {
  await rm(path, { force: true });
  const file = await open(path, 'wx', mode);
  try {
    await writeChunks(file, chunks);
    await file.sync();
    return await identityOfOpen(file);
  } finally {
    await file.close();
  }
}

/** Appends `chunks`, text as UTF-8, at the position of the file. */
export async function writeChunks(file: FileHandle, chunks: Iterable<string | Buffer>): Promise<void> {
  await file.writeFile(inBlocks(chunks));
}

const BLOCK_BYTES = 1024 * 1024;

/** Joins small chunks, because each write costs a trip to the thread pool. */
function* inBlocks(chunks: Iterable<string | Buffer>): Generator<Buffer, void, void> {
  let block: Buffer[] = [];
  let size = 0;
  for (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    block.push(bytes);
    size += bytes.length;
    if (size < BLOCK_BYTES) continue;
    yield Buffer.concat(block);
    block = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(block);
}

export async function syncFolder(path: string): Promise<void> {
  const folder = openSync(path, 'r');
  try {
    await flush(folder);
  } finally {
    closeSync(folder);
  }
}

/** Only the flush goes to the thread pool, because it waits for the disk. */
const flush = promisify(fsync);
