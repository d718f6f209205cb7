// A small file with fixed content that another program reads: written again if another process changes or removes it.

import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeAtomically } from './atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from './file-identity.ts';
import { makeFolder } from './make-directory.ts';

export class KeptFile {
  readonly #path: string;
  readonly #content: Buffer;
  readonly #mode: number;
  /** The identity of the file when it last had this content. */
  #known: FileIdentity | undefined;

  constructor(path: string, content: string | Buffer, mode: number) {
    this.#path = path;
    this.#content = Buffer.from(content);
    this.#mode = mode;
  }

  /** Replaces the file and creates its folder. Errors: FILE_WRITE. */
  async write(): Promise<void> {
    await makeFolder(dirname(this.#path), 0o700);
    this.#known = await writeAtomically(this.#path, [this.#content], { mode: this.#mode });
  }

  /** Writes the file if its content differs. Reads it only if its identity has changed. Errors: FILE_WRITE. */
  async keep(): Promise<void> {
    const now = identityOf(this.#path);
    if (now !== undefined && isSameFile(now, this.#known)) return;
    const held = await readFile(this.#path).catch(() => undefined);
    if (held?.equals(this.#content)) this.#known = now;
    else await this.write();
  }
}
