// The file by which keepalived learns how far this host is lowered. It is written in place, because keepalived watches
// it, and one write after the other.

import { writeFile } from 'node:fs/promises';
import { HeadgateError } from '../base/errors.ts';
import { loweredBy } from './vrrp.ts';

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
    await writeFile(this.#path, wanted, { mode: 0o600 }).catch((cause) => {
      throw new HeadgateError('FILE_WRITE', `Cannot write "${this.#path}"`, { cause });
    });
    this.#written = wanted;
    this.#onWritten();
  }
}
