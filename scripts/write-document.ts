// Writes a generated document. With --check it writes nothing and fails if the file differs.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `path` is relative to the repository. Sets the exit status to 1 if a check fails. */
export function writeDocument(path: string, content: string): void {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  if (!process.argv.includes('--check')) {
    writeFileSync(file, content);
    return;
  }
  if (contentOf(file) === content) return;
  console.error(`${path} differs from its source: run "make docs"`);
  process.exitCode = 1;
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
