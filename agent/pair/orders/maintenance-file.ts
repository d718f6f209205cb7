// The operator's lock of this host, kept in a file so that the next agent does not unlock the host. Owns the file.

import { stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { serial } from '../../base/serial.ts';
import { syncFolder, writeAtomically } from '../../host/atomic-file.ts';

export class MaintenanceFile {
  readonly #path: string;
  readonly #turns = serial();
  #isLocked = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** The last lock or unlock that was written, or read by read(). */
  get isLocked(): boolean {
    return this.#isLocked;
  }

  /** Whether an agent before this one has locked the host. */
  async read(): Promise<boolean> {
    this.#isLocked = await this.#exists();
    return this.#isLocked;
  }

  /** In the order of the calls. Errors: FILE_WRITE; then nothing has changed. */
  set(isLocked: boolean): Promise<void> {
    return this.#turns.run(async () => {
      await this.#write(isLocked);
      this.#isLocked = isLocked;
    });
  }

  /** Writes a lock again that another process has removed. True if it did. Errors: FILE_WRITE. */
  restore(): Promise<boolean> {
    return this.#turns.run(async () => {
      if (!this.#isLocked || (await this.#exists())) return false;
      await this.#write(true);
      return true;
    });
  }

  /** An unreadable path counts as a lock: a fault must not unlock the host. */
  #exists(): Promise<boolean> {
    return stat(this.#path).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
    );
  }

  async #write(isLocked: boolean): Promise<void> {
    if (isLocked === (await this.#exists())) return;
    if (isLocked) {
      await writeAtomically(this.#path, ['This host is locked: headgate maintenance off unlocks it.\n']);
      return;
    }
    try {
      await unlink(this.#path);
      await syncFolder(dirname(this.#path));
    } catch (cause) {
      throw new HeadgateError('FILE_WRITE', `Cannot remove "${this.#path}"`, { cause });
    }
  }
}
