// Which folders of manifests are away, gone or empty: what was in them counts on.

import type { Problem } from '../../model/load-balancer.ts';
import { fileProblem } from './manifest-file.ts';
import type { FolderState } from './manifest-folders.ts';

const WORDS = { gone: 'Cannot read the folder', empty: 'The folder is empty' } as const;

export class AwayFolders {
  /** By path. */
  readonly #folders = new Map<string, keyof typeof WORDS>();

  set(folder: string, state: FolderState): void {
    if (state === 'there') this.#folders.delete(folder);
    else this.#folders.set(folder, state);
  }

  has(folder: string): boolean {
    return this.#folders.has(folder);
  }

  /** Whether a file was in one of them. */
  hold(path: string): boolean {
    return [...this.#folders.keys()].some((folder) => isIn(path, folder));
  }

  problems(): readonly Problem[] {
    return [...this.#folders].map(([folder, state]) =>
      fileProblem(folder, `${WORDS[state]}; what was in it stays in force`),
    );
  }
}

export function isIn(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}
