// Recognizes a file that the agent wrote, without reading it.

import { statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

export interface FileIdentity {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

/** The identity of an open file, so that a file that replaced it in the meantime does not count. */
export async function identityOfOpen(file: FileHandle): Promise<FileIdentity> {
  return identityIn(await file.stat());
}

/** undefined if there is no file. Synchronous, because the thread pool costs much more than the call. */
export function identityOf(path: string): FileIdentity | undefined {
  try {
    return identityIn(statSync(path));
  } catch {
    return undefined;
  }
}

function identityIn({ ino, size, mtimeMs }: FileIdentity): FileIdentity {
  return { ino, size, mtimeMs };
}

export function isSameFile(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.ino === other?.ino && one?.size === other?.size && one?.mtimeMs === other?.mtimeMs;
}
