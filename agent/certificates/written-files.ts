// The files that an earlier agent has written for HAProxy, for a start before their objects are read, or while no API server
// answers: listeners that HAProxy serves must stay. Reads files only.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface NamedFile {
  /** The groups of its name. */
  readonly groups: readonly string[];
  /** '' if it cannot be read. */
  readonly text: string;
}

/** Files with such a name, the oldest one first; none if there is no folder. */
export function* writtenFiles(folder: string, name: RegExp): Generator<NamedFile, void, void> {
  const found = namesIn(folder).flatMap((file) => {
    const [, ...groups] = name.exec(file) ?? [];
    if (groups.length === 0) return [];
    const path = join(folder, file);
    return [{ path, groups, written: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }];
  });
  for (const { path, groups } of found.sort((a, b) => a.written - b.written))
    yield { groups, text: textOf(path) };
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
