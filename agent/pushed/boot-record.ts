// What an agent after this one must know to trust a worker that it finds: the mark of the last boot, and the files of that
// text. Written before the text changes in more than its members, so that a crash in between leaves no worker with this mark.

import { readFileSync } from 'node:fs';
import { replaceInMemory } from '../host/atomic-file.ts';
import { FILE_MODE } from './files.ts';

export interface BootRecord {
  readonly mark: string;
  /** MD5 of the text that the worker serves. */
  readonly text: string;
  /** Milliseconds since the epoch: since when the text is served. */
  readonly since: number;
  /** Why the last reload was needed. */
  readonly cause: string;
  /** MD5 by path. */
  readonly files: ReadonlyMap<string, string>;
}

/** Errors: FILE_WRITE. */
export function writeRecord(path: string, { files, ...rest }: BootRecord): void {
  replaceInMemory(path, `${JSON.stringify({ ...rest, files: Object.fromEntries(files) })}\n`, FILE_MODE);
}

/** undefined if there is none, or one that this version cannot read. */
export function readRecord(path: string): BootRecord | undefined {
  try {
    const { mark, text, since, cause, files } = JSON.parse(readFileSync(path, 'utf8'));
    if ([mark, text, cause].some((each) => typeof each !== 'string') || typeof since !== 'number')
      return undefined;
    const digests = Object.entries(files).map(([name, digest]) => [name, String(digest)] as const);
    return { mark, text, since, cause, files: new Map(digests) };
  } catch {
    return undefined;
  }
}
