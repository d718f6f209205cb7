// Test cases in text files. Lines of dashes separate the parts: the first is the input, the others are the expected
// output. A new case is a new file. `UPDATE=1` writes the actual output into the files.

import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** Longer than YAML's `---`. */
const DASHES = '--------------------------------';

export interface CaseFile {
  /** The file name without its extension, with blanks instead of hyphens. */
  readonly title: string;
  readonly path: string;
  /** Each ends in a line feed, unless it is empty. */
  readonly parts: readonly string[];
}

export const isUpdating = process.env.UPDATE === '1';

/** `folder` is next to the calling test: `new URL('cases/', import.meta.url)`. */
export function readCases(folder: URL): readonly CaseFile[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.txt'))
    .sort()
    .map((name) => {
      const path = fileURLToPath(new URL(name, folder));
      const title = name.replace(/\.txt$/, '').replaceAll('-', ' ');
      return { title, path, parts: partsOf(readFileSync(path, 'utf8')) };
    });
}

function partsOf(text: string): readonly string[] {
  const parts: string[] = [''];
  for (const line of text.split(/(?<=\n)/)) {
    if (line.trimEnd() === DASHES) parts.push('');
    else parts[parts.length - 1] += line;
  }
  return parts;
}

export function writeCase({ path }: CaseFile, parts: readonly string[]): Promise<void> {
  return writeFile(path, parts.join(`${DASHES}\n`));
}
