// Reads the bytes of a manifest together with the stamp that tells whether it has changed since.
// Synchronous: the page cache answers in microseconds, the thread pool later, and much later while it is busy with
// fsync. Never waits for the other end of a pipe.

import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';
import { stampOf } from './folder-facts.ts';

export type Reading =
  | ManifestContent
  | { readonly kind: 'Absent'; readonly stamp: string }
  | { readonly kind: 'Unreadable'; readonly stamp: string; readonly message: string };

export interface ManifestContent {
  readonly kind: 'Content';
  readonly bytes: Buffer;
  readonly stamp: string;
}

/** Bytes. */
const LARGEST = 128 * 1024 * 1024;

/** Whatever is no regular file counts as absent: a link to /dev/null is how people mask one. */
export function readManifest(path: string): Reading {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    // Before the content, so that a change in between is seen as one.
    const stat = fstatSync(file);
    const stamp = stampOf(stat);
    if (!stat.isFile()) return { kind: 'Absent', stamp };
    if (stat.size > LARGEST) {
      return { kind: 'Unreadable', stamp, message: `The file is larger than ${LARGEST} bytes` };
    }
    return { kind: 'Content', bytes: readFileSync(file), stamp };
  } catch (error) {
    const stamp = (error as NodeJS.ErrnoException).code ?? 'error';
    if (stamp === 'ENOENT' || stamp === 'ENOTDIR' || stamp === 'ENXIO') return { kind: 'Absent', stamp };
    return { kind: 'Unreadable', stamp, message: `Cannot read the file: ${messageOf(error)}` };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
