// The file to which a daemon appends its messages for ever: what it has said since, and how it is kept small.
// It stands where the daemon may write: a link there is not followed, and a pipe not waited for.

import { constants } from 'node:fs';
import { lstat, open, readFile } from 'node:fs/promises';

const { O_RDONLY, O_WRONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
const AS_IT_IS = O_NOFOLLOW | O_NONBLOCK;

/** Where the log ends now, to read later what was added. */
export async function logSize(path: string): Promise<number> {
  return lstat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

export async function logSince(path: string, from: number): Promise<string> {
  return (await readLog(path, from)).text;
}

/** The same, and how far that is. */
export async function readLog(
  path: string,
  from: number,
): Promise<{ readonly text: string; readonly end: number }> {
  return readFile(path, { flag: O_RDONLY | AS_IT_IS }).then(
    (bytes) => ({ text: bytes.subarray(from > bytes.length ? 0 : from).toString('utf8'), end: bytes.length }),
    () => ({ text: '', end: 0 }),
  );
}

/** What is older is dropped once there are more than `most` bytes. */
export async function trimLog(path: string, most: number): Promise<void> {
  if ((await logSize(path)) <= most) return;
  try {
    await using file = await open(path, O_WRONLY | AS_IT_IS);
    await file.truncate(0);
  } catch {
    // It is gone, or not ours to change.
  }
}
