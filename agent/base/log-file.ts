// The file to which a daemon appends its messages for ever: what it has said since, and how it is kept small.

import { readFile, stat, truncate } from 'node:fs/promises';

/** Where the log ends now, to read later what was added. */
export async function logSize(path: string): Promise<number> {
  return stat(path).then(
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
  return readFile(path).then(
    (bytes) => ({ text: bytes.subarray(from > bytes.length ? 0 : from).toString('utf8'), end: bytes.length }),
    () => ({ text: '', end: 0 }),
  );
}

/** What is older is dropped once there are more than `most` bytes. */
export async function trimLog(path: string, most: number): Promise<void> {
  if ((await logSize(path)) > most) await truncate(path, 0).catch(() => undefined);
}
