// Remembers on disk that this host is locked, so that an agent that starts anew leaves it locked.

import { stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { syncFolder, writeAtomically } from '../../host/atomic-file.ts';

export class MaintenanceFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** A file that cannot be looked at counts as there: a host is not unlocked by a fault. */
  isThere(): Promise<boolean> {
    return stat(this.#path).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
    );
  }

  /** Does nothing where it is so already. Errors: FILE_WRITE. */
  async put(isLocked: boolean): Promise<void> {
    if (isLocked === (await this.isThere())) return;
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
