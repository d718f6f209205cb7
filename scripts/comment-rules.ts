// Three rules of comments that a machine can count (CONTRIBUTING.md has the others):
// a doc comment does not begin with "Of", "Those" or "That"; that of a map names its key; a pronoun does not cross a sentence.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './check.ts';

/** A field or a variable that is a map. */
const MAP =
  /^\s*(?:readonly |static |export |const |let )*#?\w+(?:\??: (?:Readonly)?Map<| = new Map<|: ReadonlyMap<)/;
const KEY_NAMED = /\b(?:keys?|by|each|names?|for)\b|→/i;
const WITHOUT_SUBJECT = /^(?:Of|Those|That)\b/;
const PRONOUN =
  /[.:;] (?:They|Those|These|This|That) (?:is|are|was|were|has|have|had|do|does|can|cannot|may|must|would|will|needs?)\b/;

/** Returns a line such as `agent/a.ts:3: …` for each fault. */
export function commentFaults(path: string, text: string): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, at) => {
    const comment = commentIn(line);
    const faults: string[] = [];
    if (isFirstOfDoc(lines, at) && WITHOUT_SUBJECT.test(comment))
      faults.push(`"${comment.slice(0, 30)}": begin with the subject, not with "Of", "Those" or "That"`);
    const [pronoun] = PRONOUN.exec(comment) ?? [];
    if (pronoun !== undefined) faults.push(`"${pronoun}": repeat the noun`);
    const doc = MAP.test(line) ? docAbove(lines, at) : '';
    if (doc !== '' && !KEY_NAMED.test(doc)) faults.push(`"${doc}": name the key of the map`);
    return faults.map((fault) => `${path}:${at + 1}: ${fault}`);
  });
}

/** '' for a line without a comment of its own. */
function commentIn(line: string): string {
  const [, text = ''] = /^\s*(?:\/\/|\/\*\*?|\*(?!\/)) ?(.*?)(?: ?\*\/)?$/.exec(line) ?? [];
  return text;
}

function isFirstOfDoc(lines: readonly string[], at: number): boolean {
  return /^\s*\/\*\* /.test(lines[at] ?? '') || /^\s*\/\*\*$/.test(lines[at - 1] ?? '');
}

/** The doc comment that ends in the line before, as one text; '' without one. */
function docAbove(lines: readonly string[], at: number): string {
  if (!/\*\/$/.test(lines[at - 1] ?? '')) return '';
  const found: string[] = [];
  for (let line = at - 1; line >= 0; line--) {
    found.unshift(commentIn(lines[line] ?? ''));
    if (/^\s*\/\*\*/.test(lines[line] ?? '')) break;
  }
  return found.join(' ').trim();
}

if (import.meta.main) {
  const faults = ['agent', 'health', 'scripts', 'bench', 'test'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .flatMap((path) => commentFaults(join(folder, path), readFileSync(join(root, folder, path), 'utf8'))),
  );
  for (const fault of faults) console.log(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
