// The file to which a daemon appends its messages: reads the messages since an offset, and keeps the file small.
// The daemon may write to its folder, so links are not followed and pipes do not block.

import { closeSync, constants, fstatSync, ftruncateSync, openSync, statSync } from 'node:fs';
import { lstat, readFile } from 'node:fs/promises';
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
 * Keeps a daemon's log small, also after another program renamed or removed the file, to which the daemon continues to write.
 */
export class DaemonLog {
  readonly #path: string;
  readonly #maxBytes: number;
  /** Descriptors of the last two files that had the path: the daemon writes to one of them. */
  readonly #files: number[] = [];

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  /** Empties it if it has more than `maxBytes`. `pid`: the daemon; 0 if it does not run. */
  trim(pid = 0): void {
    this.#take(openLog(this.#path, SAFELY));
    for (const file of this.#files) this.#empty(file);
    // A file that went before this agent began. A process of another user could have any file open that root may change.
    const { uid } = statSync(`/proc/${pid}`, { throwIfNoEntry: false }) ?? {};
    const file = uid === process.getuid?.() ? openLog(`/proc/${pid}/fd/2`, O_NONBLOCK) : undefined;
    if (file === undefined) return;
    this.#empty(file);
    closeSync(file);
  }

  close(): void {
    for (const file of this.#files.splice(0)) closeSync(file);
  }

  #take(file: number | undefined): void {
    if (file === undefined) return;
    const last = this.#files.at(-1);
    if (last !== undefined && fstatSync(file).ino === fstatSync(last).ino) {
      closeSync(file);
      return;
    }
    this.#files.push(file);
    if (this.#files.length > 2) closeSync(this.#files.shift() ?? file);
  }

  #empty(file: number): void {
    const found = fstatSync(file);
    if (found.isFile() && found.size > this.#maxBytes) ftruncateSync(file);
  }
}

/** undefined if there is no such file, or the agent may not change it. */
function openLog(path: string, flags: number): number | undefined {
  try {
    return openSync(path, O_WRONLY | flags);
  } catch {
    return undefined;
  }
}
