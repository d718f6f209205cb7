// Where manifests are: folders, and single files. A single file is read as its folder, of which no other file counts.
// Reads only whether a path is a file.

import { basename, dirname } from 'node:path';
import { isFile, isIn, statOf } from './file-system.ts';

export interface ManifestPaths {
  /** The folders to watch; each once. */
  readonly folders: readonly string[];
  /** The names of the files of a folder that count; undefined: all manifests in it and in its subfolders. */
  namesIn(folder: string): ReadonlySet<string> | undefined;
}

/** `paths`: those of the settings. A file in one of the folders is nothing special. */
export function manifestPaths(paths: readonly string[]): ManifestPaths {
  const whole = paths.filter((path) => !isFile(statOf(path)));
  const files = paths.filter((path) => isFile(statOf(path)) && !whole.some((folder) => isIn(path, folder)));
  const names = new Map<string, Set<string>>();
  for (const path of files) {
    const folder = dirname(path);
    names.set(folder, (names.get(folder) ?? new Set()).add(basename(path)));
  }
  return {
    folders: [...new Set([...whole, ...names.keys()])],
    namesIn: (folder) => names.get(folder),
  };
}
