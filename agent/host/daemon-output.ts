// The file to which a daemon appends its messages: reads the messages since an offset, and keeps the file small.
// The daemon may write to its folder, so links are not followed and pipes do not block.

import { constants } from 'node:fs';
import { lstat, open, readFile, stat } from 'node:fs/promises';
import { SAFELY } from './safe-open.ts';

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;

/** The offset of the log's end; 0 if there is no log. */
export async function logSize(path: string): Promise<number> {
  return lstat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** The text that was added since the offset `from`. */
export async function logSince(path: string, from: number): Promise<string> {
  return (await readLog(path, from)).text;
}

/** As logSince(), with the offset of the text's end. */
export async function readLog(
  path: string,
  from: number,
): Promise<{ readonly text: string; readonly end: number }> {
  return readFile(path, { flag: O_RDONLY | SAFELY }).then(
    (bytes) => ({ text: bytes.subarray(from > bytes.length ? 0 : from).toString('utf8'), end: bytes.length }),
    () => ({ text: '', end: 0 }),
  );
}

/**
 * Empties a log of more than `maxBytes`; also the file that the daemon `pid` writes to, which may have another name or none.
 * Only of a process of the agent's own user: another one could have any file open that root may change.
 */
export async function trimLog(path: string, maxBytes: number, pid = 0): Promise<void> {
  if ((await logSize(path)) > maxBytes) await empty(path, SAFELY, maxBytes);
  const { uid } = await stat(`/proc/${pid}`).catch(() => ({ uid: undefined }));
  if (uid === process.getuid?.()) await empty(`/proc/${pid}/fd/2`, O_NONBLOCK, maxBytes);
}

async function empty(path: string, flags: number, maxBytes: number): Promise<void> {
  try {
    await using file = await open(path, O_WRONLY | flags);
    const found = await file.stat();
    if (found.isFile() && found.size > maxBytes) await file.truncate(0);
  } catch {
    // The file is gone, or the agent may not change it.
  }
}
