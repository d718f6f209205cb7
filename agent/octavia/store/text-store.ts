// The texts of load balancers on disk: the one that was uploaded last, and the one that runs. Both stay if a write fails.

import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { makeFolder } from '../../host/make-directory.ts';

/** `uploaded`: checked by HAProxy, but perhaps not run yet. */
export type TextKind = 'uploaded' | 'running';

/** The first name is that of Octavia's own agent. */
const FILES: Readonly<Record<TextKind, string>> = { uploaded: 'haproxy.cfg', running: 'running.cfg' };

export class TextStore {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** Load balancers with an uploaded text. Errors: FILE_READ. */
  async ids(): Promise<readonly string[]> {
    await makeFolder(this.#base, 0o755);
    const folders = await readdir(this.#base, { withFileTypes: true });
    const ids: string[] = [];
    for (const { name } of folders
      .filter((each) => each.isDirectory())
      .sort((a, b) => (a.name < b.name ? -1 : 1)))
      if ((await this.read(name, 'uploaded')) !== undefined) ids.push(name);
    return ids;
  }

  /** undefined if there is none. Errors: FILE_READ. */
  async read(id: string, kind: TextKind): Promise<string | undefined> {
    const path = this.#path(id, kind);
    try {
      return await readFile(path, 'utf8');
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      throw new HeadgateError('FILE_READ', `Cannot read "${path}"`, { cause });
    }
  }

  /** Errors: FILE_WRITE. */
  async write(id: string, kind: TextKind, text: string): Promise<void> {
    await makeFolder(join(this.#base, id), 0o755);
    await writeAtomically(this.#path(id, kind), [text]);
  }

  /** Removes the load balancer's folder with all that is in it, and the socket that its text has named. */
  async remove(id: string): Promise<void> {
    await rm(join(this.#base, `${id}.sock`), { force: true });
    await rm(join(this.#base, id), { recursive: true, force: true });
  }

  #path(id: string, kind: TextKind): string {
    return join(this.#base, id, FILES[kind]);
  }
}
