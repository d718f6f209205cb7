// Counts the words of the documents that are written by hand, and fails if they are more than MAX_WORDS: each fact stands in
// one place, and a document that grows pushes another one to be shorter. Generated text, decision records and CHANGELOG do not
// count; neither do signs alone, such as the lines of a table.

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './check.ts';

/** 45,000 when it was written; hosts by BGP (48,000), then egress, DNS, NetworkPolicy and authentication add pages of their own. */
export const MAX_WORDS = 51_500;

const NOT_COUNTED = /^CHANGELOG\.md$|^docs\/design\/decisions\//;
const SKIPPED_FOLDERS = /^(?:node_modules|\.git|\.cache|dist)$/;
/** What a script writes: from its mark to the mark of its end, or to the end of the document. */
const GENERATED =
  /<!-- (?:Written by scripts\/|table: begin)[\s\S]*?(?:<!-- (?:The end of what is written\.|table: end) -->|$(?![\s\S]))/g;

export interface DocumentWords {
  /** Below the repository. */
  readonly path: string;
  readonly words: number;
}

/** The longest document first. */
export function documentWords(directory: string): DocumentWords[] {
  return documentsBelow(directory)
    .map((path) => ({ path, words: wordsByHand(readFileSync(join(directory, path), 'utf8')) }))
    .sort((a, b) => b.words - a.words);
}

export function wordsByHand(markdown: string): number {
  return markdown
    .replaceAll(GENERATED, '')
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

function documentsBelow(directory: string): string[] {
  const below = (folder: string): string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return SKIPPED_FOLDERS.test(entry.name) ? [] : below(path);
      return entry.name.endsWith('.md') ? [relative(directory, path)] : [];
    });
  return below(directory).filter((path) => !NOT_COUNTED.test(path));
}

if (import.meta.main) {
  const documents = documentWords(root);
  const total = documents.reduce((sum, { words }) => sum + words, 0);
  if (total > MAX_WORDS) {
    for (const { path, words } of documents) console.log(`${words} ${path}`);
    console.log(`Documents have ${total} words written by hand, more than ${MAX_WORDS}`);
    process.exitCode = 1;
  }
}
