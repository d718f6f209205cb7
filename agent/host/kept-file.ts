// A small file of which it is known what it shall hold, and which somebody else reads: kept so, whatever is done to it.

import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeAtomically } from './atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from './file-identity.ts';
import { makeFolder } from './make-directory.ts';

export class KeptFile {
  readonly #path: string;
  readonly #content: Buffer;
  readonly #mode: number;
  /** As it was when it was last known to hold that. */
  #known: FileIdentity | undefined;

  constructor(path: string, content: string | Buffer, mode: number) {
    this.#path = path;
    this.#content = Buffer.from(content);
    this.#mode = mode;
  }

  /** In place of whatever stands there; makes the folder, too. Errors: FILE_WRITE. */
  async write(): Promise<void> {
    await makeFolder(dirname(this.#path), 0o700);
    this.#known = await writeAtomically(this.#path, [this.#content], { mode: this.#mode });
  }

  /** Writes it where it is not there, or not what it was. Costs one look where it is. Errors: FILE_WRITE. */
  async keep(): Promise<void> {
    const now = identityOf(this.#path);
    if (now !== undefined && isSameFile(now, this.#known)) return;
    const held = await readFile(this.#path).catch(() => undefined);
    if (held?.equals(this.#content)) this.#known = now;
    else await this.write();
  }
}
