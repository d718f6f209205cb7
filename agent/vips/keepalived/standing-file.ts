// The file by which keepalived learns how far this host is lowered. It is written in place, because keepalived watches
// it, and one write after the other; never emptied on the way, because an empty one says that the host is well.

import { constants } from 'node:fs';
import { open, readFile, writeFile } from 'node:fs/promises';
import { HeadgateError } from '../../base/errors.ts';
import { isShortage } from '../../host/shortage.ts';
import { loweredBy } from '../vrrp.ts';

const LOWEST = `${loweredBy(['haproxy'])}\n`;

export class StandingFile {
  readonly #path: string;
  readonly #onWritten: () => void;
  #wanted: string | undefined;
  #written: string | undefined;
  #last: Promise<void> = Promise.resolve();

  /** `onWritten` is told of each change that stands in the file. */
  constructor(path: string, onWritten: () => void) {
    this.#path = path;
    this.#onWritten = onWritten;
  }

  /** Makes the file where there is none, because keepalived 2.3 passes over one that is not there. */
  async make(): Promise<void> {
    await writeFile(this.#path, LOWEST, { mode: 0o600, flag: 'wx' }).catch(() => undefined);
  }

  /** Where nothing is wanted yet the host is taken for one whose HAProxy does not answer. Errors: FILE_WRITE. */
  lower(): Promise<void> {
    if (this.#wanted === undefined) this.#wanted = LOWEST;
    return this.write();
  }

  /** By how much the priorities shall be lowered; what stands in the file stays until write(). */
  want(lowered: number): void {
    this.#wanted = `${lowered}\n`;
  }

  /** Whether it still says what was written to it; true while a shortage leaves it unknown. */
  async isIntact(): Promise<boolean> {
    const written = this.#written;
    if (written === undefined) return true;
    const found = await readFile(this.#path, 'utf8').catch((error) =>
      isShortage(error) ? written : undefined,
    );
    // One that is being written may be empty.
    return found === written || this.#written !== written;
  }

  /** The next write() writes, whatever was written before. */
  forget(): void {
    this.#written = undefined;
  }

  /** Brings the file to what is wanted. Errors: FILE_WRITE. */
  write(): Promise<void> {
    const writing = this.#last.then(() => this.#write());
    this.#last = writing.catch(() => undefined);
    return writing;
  }

  async #write(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted === undefined || wanted === this.#written) return;
    this.#written = undefined;
    await overwrite(this.#path, wanted).catch((cause) => {
      throw new HeadgateError('FILE_WRITE', `Cannot write "${this.#path}"`, { cause });
    });
    this.#written = wanted;
    this.#onWritten();
  }
}

/**
 * The old bytes or the new ones can be read at any time, with some of the old ones behind the new line at most, which
 * keepalived does not read. Takes no room on a disk that is full.
 */
async function overwrite(path: string, text: string): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    await file.write(text, 0);
    await file.truncate(text.length);
  } finally {
    await file.close();
  }
}
