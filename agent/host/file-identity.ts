// What tells that a file is still the one that we wrote, without reading it.

import { statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

export interface FileIdentity {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Of what has just been written: taken from its descriptor, so it is of that and of nothing put in its place. */
export async function identityOfOpen(file: FileHandle): Promise<FileIdentity> {
  return identityIn(await file.stat());
}

/** undefined where there is none. Synchronous: asked often, and many times as cheap as by the thread pool. */
export function identityOf(path: string): FileIdentity | undefined {
  try {
    return identityIn(statSync(path));
  } catch {
    return undefined;
  }
}

/** The rest of what the system tells is not kept. */
function identityIn({ ino, size, mtimeMs }: FileIdentity): FileIdentity {
  return { ino, size, mtimeMs };
}

export function isSameFile(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.ino === other?.ino && one?.size === other?.size && one?.mtimeMs === other?.mtimeMs;
}
