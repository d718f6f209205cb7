// Cases that are text files: parts between lines of dashes, the first one given, the others expected.
// A new case is a new file. `UPDATE=1` writes what came out in place of what was expected.

import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** Longer than the `---` of YAML. */
const DASHES = '--------------------------------';

export interface CaseFile {
  /** The file's name without its ending, blanks for hyphens. */
  readonly title: string;
  readonly path: string;
  /** Each ends in a line feed, unless it is empty. */
  readonly parts: readonly string[];
}

export const isUpdating = process.env.UPDATE === '1';

/** `folder` is beside the test that asks: `new URL('cases/', import.meta.url)`. */
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
