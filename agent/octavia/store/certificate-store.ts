// The files that the texts of a load balancer name: certificates, lists of certificates, authorities, CRLs. The controller
// deletes those of a listener before it pushes the text without it, also ones that other listeners use: such a file is
// only marked as deleted, and goes when no text names it any more.

import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { makeFolder } from '../../host/make-directory.ts';
import { filesInList } from '../../pushed/text/named-files.ts';

/** No name of a file that the controller may choose ends so. */
const MARK = '.deleted';

export class CertificateStore {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** undefined if there is none, or if it was deleted. Errors: FILE_READ. */
  async read(id: string, name: string): Promise<Buffer | undefined> {
    if ((await readIfThere(this.#path(id, name) + MARK)) !== undefined) return undefined;
    return await readIfThere(this.#path(id, name));
  }

  /** Errors: FILE_WRITE; the old file then stays. */
  async write(id: string, name: string, content: Buffer): Promise<void> {
    await makeFolder(join(this.#base, id), 0o700);
    await writeAtomically(this.#path(id, name), [content]);
    await rm(this.#path(id, name) + MARK, { force: true });
  }

  /** `named`: paths that the texts of the load balancer name. Errors: FILE_WRITE. */
  async remove(id: string, name: string, named: ReadonlySet<string>): Promise<void> {
    const path = this.#path(id, name);
    if ((await readIfThere(path)) === undefined) return;
    if ((await this.#withLists(named)).has(path)) await writeAtomically(path + MARK, ['']);
    else await rm(path, { force: true });
  }

  /** Removes the files that are marked as deleted and that no text names now. */
  async sweep(id: string, named: ReadonlySet<string>): Promise<void> {
    const names = await readdir(join(this.#base, id)).catch(() => []);
    const marked = names.filter((name) => name.endsWith(MARK));
    if (marked.length === 0) return;
    const used = await this.#withLists(named);
    for (const name of marked) {
      const path = join(this.#base, id, name.slice(0, -MARK.length));
      if (used.has(path)) continue;
      await rm(path, { force: true });
      await rm(path + MARK, { force: true });
    }
  }

  async removeAll(id: string): Promise<void> {
    await rm(join(this.#base, id), { recursive: true, force: true });
  }

  /** Adds what the lists of certificates among the files name: a path at the beginning of a line. */
  async #withLists(named: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const all = new Set(named);
    for (const path of named) {
      const content = String((await readIfThere(path)) ?? '');
      if (content.includes('-----BEGIN')) continue;
      for (const file of filesInList(content)) all.add(file);
    }
    return all;
  }

  #path(id: string, name: string): string {
    return join(this.#base, id, name);
  }
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new HeadgateError('FILE_READ', `Cannot read "${path}"`, { cause });
  }
}
