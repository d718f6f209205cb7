// keepalived's track file, with the number by which the VRRP priority of this host is lowered; it can also take VRRP out
// of service. Written in place, because keepalived watches it, and never empty in between, because that means 0.

import { constants } from 'node:fs';
import { open, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../../base/errors.ts';
import { serial } from '../../../base/serial.ts';
import { makeFolder } from '../../../host/make-directory.ts';
import { isShortage } from '../../../host/shortage.ts';
import { loweredBy } from '../../vrrp.ts';

/** keepalived takes an instance that is lowered by 254 to state fault. */
const FAULT = '254\n';
const LOWEST = `${loweredBy(['haproxy'])}\n`;

export class StandingFile {
  readonly #path: string;
  readonly #onWritten: () => void;
  readonly #turns = serial();
  #lowered: string | undefined;
  #isOut = false;
  #written: string | undefined;

  /** `onWritten` is called after each change of the file. */
  constructor(path: string, onWritten: () => void) {
    this.#path = path;
    this.#onWritten = onWritten;
  }

  /** Makes the file if it is missing, because keepalived 2.3 ignores a track file that it does not find. */
  async make(): Promise<void> {
    await writeFile(this.#path, LOWEST, { mode: 0o600, flag: 'wx' }).catch(() => undefined);
  }

  /** Lowers the host as if HAProxy did not answer, if set() was not called yet. Errors: FILE_WRITE. */
  lower(): Promise<void> {
    this.#lowered ??= LOWEST;
    return this.write();
  }

  /** The next write() lowers the priorities by this number. */
  set(lowered: number): void {
    this.#lowered = `${lowered}\n`;
  }

  /** The next write() gives all VIPs to the other host, dead or alive, whatever set() says; or ends that. */
  takeOut(isOut: boolean): void {
    if (isOut !== this.#isOut) this.#lowered ??= LOWEST;
    this.#isOut = isOut;
  }

  /** False if another process has changed the file; true if the agent lacks descriptors or memory to read it. */
  async isIntact(): Promise<boolean> {
    const written = this.#written;
    if (written === undefined) return true;
    const found = await readFile(this.#path, 'utf8').catch((error) =>
      isShortage(error) ? written : undefined,
    );
    // A write that has begun in the meantime is no damage.
    return found === written || this.#written !== written;
  }

  /** Writes again after another process has changed the file. Errors: FILE_WRITE. */
  async restore(): Promise<void> {
    await makeFolder(dirname(this.#path), 0o711);
    this.#written = undefined;
    await this.write();
  }

  /** Writes the number that was set last, if the file does not have it. Errors: FILE_WRITE. */
  write(): Promise<void> {
    return this.#turns.run(() => this.#write());
  }

  async #write(): Promise<void> {
    const desired = this.#isOut ? FAULT : this.#lowered;
    if (desired === undefined || desired === this.#written) return;
    this.#written = undefined;
    await overwrite(this.#path, desired).catch((cause) => {
      throw new HeadgateError('FILE_WRITE', `Cannot write "${this.#path}"`, { cause });
    });
    this.#written = desired;
    this.#onWritten();
  }
}

/**
 * A reader gets the old line or the new one at any time. Bytes of the old line may follow the new one for a moment, which
 * keepalived ignores. Needs no space on a full disk.
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
