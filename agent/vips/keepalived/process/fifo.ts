// Reads the FIFO to which keepalived writes each change of state. The agent makes the FIFO, so that keepalived never
// removes it, and opens it for writing as well, so that reading does not end when keepalived does.

import { constants, openSync, readSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { dirname } from 'node:path';
import { HeadgateError } from '../../../base/errors.ts';
import { makeFolder } from '../../../host/make-directory.ts';
import { runCommand } from '../../../host/run-command.ts';

export class NotifyFifo {
  readonly #path: string;
  readonly #onLine: (line: string) => void;
  #socket: Socket | undefined;
  #inode = 0;
  #rest = '';

  constructor(path: string, onLine: (line: string) => void) {
    this.#path = path;
    this.#onLine = onLine;
  }

  /** True if the FIFO was missing and is made. Lines from before are dropped. Errors: FILE_WRITE. */
  async open(): Promise<boolean> {
    this.close();
    const isMissing = !(await isFifo(this.#path));
    if (isMissing) {
      await makeFolder(dirname(this.#path), 0o711);
      await rm(this.#path, { force: true });
      const { exitCode, stderr } = await runCommand('mkfifo', ['-m', '600', this.#path], { timeout: 5_000 });
      if (exitCode !== 0)
        throw new HeadgateError('FILE_WRITE', `Cannot make the FIFO "${this.#path}": ${stderr.trim()}`);
    }
    this.#inode = (await stat(this.#path)).ino;
    // Only the socket closes the descriptor: a FileHandle would close it a second time, when another file may have its number.
    const fd = openSync(this.#path, constants.O_RDWR | constants.O_NONBLOCK);
    drain(fd);
    this.#rest = '';
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#socket
      .setEncoding('utf8')
      .on('data', (chunk) => this.#take(String(chunk)))
      .on('error', () => undefined)
      .unref();
    return isMissing;
  }

  /** False if another process has removed or replaced the FIFO. */
  async isIntact(): Promise<boolean> {
    const inode = await stat(this.#path).then(
      ({ ino }) => ino,
      () => 0,
    );
    return this.#socket !== undefined && !this.#socket.destroyed && inode === this.#inode;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #take(chunk: string): void {
    const lines = `${this.#rest}${chunk}`.split('\n');
    this.#rest = (lines.pop() ?? '').slice(-1_000);
    for (const line of lines) this.#onLine(line);
  }
}

async function isFifo(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFIFO(),
    () => false,
  );
}

function drain(fd: number): void {
  const buffer = Buffer.alloc(65_536);
  try {
    while (readSync(fd, buffer) > 0);
  } catch {
    // EAGAIN: the FIFO is empty.
  }
}
