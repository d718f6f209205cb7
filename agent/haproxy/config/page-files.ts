// The pages that HAProxy answers with instead of its own, in the state directory: HAProxy refuses its whole file if one is
// missing, also after a reboot without the agent. Each is named by the content of its ConfigMap, so that the files of a
// configuration never change. Owns the files.
// Why: docs/design/decisions/0064-error-pages.md

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { serial } from '../../base/serial.ts';
import { KeptFile } from '../../host/kept-file.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { ErrorPages, LoadBalancer } from '../../model/load-balancer.ts';
import { pageFile } from './error-pages.ts';

/** The text of checked pages: JSON, a list of statuses with their bodies; undefined if they are not known. */
export type PagesText = (name: string, fingerprint: string) => string | undefined;

export interface PageFilesOptions {
  readonly folder: string;
  readonly fileMode: number;
  readonly folderMode: number;
  readonly pages: PagesText;
}

export class PageFiles {
  readonly #options: PageFilesOptions;
  readonly #writes = serial();
  /** By path. */
  readonly #files = new Map<string, KeptFile>();

  constructor(options: PageFilesOptions) {
    this.#options = options;
  }

  /** Writes the pages of these load balancers. Errors: FILE_WRITE. */
  write(loadBalancers: Iterable<LoadBalancer>): Promise<void> {
    const { folder, folderMode, fileMode, pages } = this.#options;
    const texts = pageTexts(pagesOf(loadBalancers), folder, pages);
    return this.#writes.run(async () => {
      if (texts.size > 0) await makeFolder(folder, folderMode);
      for (const [path, text] of texts) {
        if (this.#files.has(path)) continue;
        const file = new KeptFile(path, text, fileMode);
        await file.keep();
        this.#files.set(path, file);
      }
    });
  }

  /** Writes files again that another process has removed or changed. Errors: FILE_WRITE. */
  keep(): Promise<void> {
    return this.#writes.run(async () => {
      if (this.#files.size > 0) await makeFolder(this.#options.folder, this.#options.folderMode);
      for (const file of this.#files.values()) await file.keep();
    });
  }

  /** Removes the files that none of these load balancers has, also those of an earlier agent. */
  keepOnly(loadBalancers: Iterable<LoadBalancer>): Promise<void> {
    const { folder } = this.#options;
    const used = new Set(
      pagesOf(loadBalancers).flatMap((pages) =>
        pages.statuses.map((status) => pageFile(folder, pages, status)),
      ),
    );
    return this.#writes.run(async () => {
      for (const file of await readdir(folder).catch(() => [])) {
        const path = join(folder, file);
        if (used.has(path)) continue;
        this.#files.delete(path);
        await rm(path, { force: true });
      }
    });
  }
}

/** By path. */
export function pageTexts(
  all: readonly ErrorPages[],
  folder: string,
  pages: PagesText,
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const each of all) {
    const text = pages(each.name, each.fingerprint);
    // Only an earlier agent had them: its files stay.
    for (const [status, body] of text === undefined ? [] : pagesIn(text))
      texts.set(pageFile(folder, each, status), body);
  }
  return texts;
}

export function pagesIn(text: string): readonly (readonly [status: string, body: string])[] {
  return JSON.parse(text);
}

export function pagesOf(loadBalancers: Iterable<LoadBalancer>): readonly ErrorPages[] {
  return [...loadBalancers].flatMap(({ listeners }) =>
    listeners.flatMap(({ errorPages }) => errorPages ?? []),
  );
}
