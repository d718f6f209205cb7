// Finds words with a plainer alternative in the lines that a branch adds: in comments, string literals and documents.
// Words in backticks are quotes and allowed. Without Git or its history it finds nothing.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './check.ts';

export interface AddedLine {
  readonly path: string;
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

/** Each word with its alternative. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  // At the beginning of a sentence, before its main clause.
  [/(?:^|[.;:] |["'`*] ?)Where [^,.;:]{4,80}, (?!and |or |but |once |for )/, 'If'],
  [/\b(?:only|also|even|except|but) where\b/i, 'if'],
  [/\bwhere (?:none|nothing|no|there (?:is|are)|that is|one is|they are) /, 'if'],
  [/\b(?:some|no)body(?:’s|'s)?\b/i, 'the actor: an operator, another process, no client'],
  [/\bwho(?:so)?ever\b/i, 'the actor: the operator who, the process that'],
  [/\bgo(?:es|ing)? on\b(?! and on)/i, 'continue'],
  [/\bwent on\b/i, 'continued'],
  [/\bby (?:itself|themselves)\b/i, 'automatically, alone'],
  [/\bfor ever\b/i, 'forever'],
  [/\banew\b/i, 'again'],
  [/\bin place of\b/i, 'instead of'],
  [/\bat the most\b/i, 'at most'],
  [/\bshall\b/i, 'must, should'],
];

const FILES = ['*.ts', '*.md', '*.mustache', '*.sh', '*Makefile'];
/** A test that shows such words and a page that quotes titles of tests. */
const EXEMPT = ['test/scripts/plain-words.test.ts', 'docs/conformance.md'];

/** Returns a line such as `file:3: "goes on": continue` for each word found. */
export function wordFaults(lines: readonly AddedLine[]): string[] {
  return lines
    .filter(({ path }) => !EXEMPT.includes(path))
    .flatMap(({ path, number, text }) => {
      const prose = proseOf(path, text);
      return WORDS.flatMap(([word, better]) => {
        const [found] = word.exec(prose) ?? [];
        return found === undefined ? [] : [`${path}:${number}: "${found.trim()}": ${better}`];
      });
    });
}

/** The lines that the working tree adds to the commit where the branch left `main`; on `main`, to the last commit. */
export function addedLines(directory: string): AddedLine[] {
  const git = (...args: string[]) => {
    const { status, stdout } = spawnSync('git', args, {
      cwd: directory,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
    return status === 0 ? stdout : undefined;
  };
  const base = git('merge-base', 'HEAD', 'main') ?? git('merge-base', 'HEAD', 'origin/main') ?? 'HEAD';
  const diff = git(
    'diff',
    '--unified=0',
    '--find-renames',
    '--no-color',
    '--no-ext-diff',
    base.trim(),
    '--',
    ...FILES,
  );
  const untracked = git('ls-files', '--others', '--exclude-standard', '--', ...FILES) ?? '';
  return [
    ...linesOfDiff(diff ?? ''),
    ...untracked
      .split('\n')
      .filter((path) => path !== '')
      .flatMap((path) => linesOf(path, readFileSync(join(directory, path), 'utf8'))),
  ];
}

export function linesOfDiff(diff: string): AddedLine[] {
  const lines: AddedLine[] = [];
  let path = '';
  let number = 0;
  for (const line of diff.split('\n')) {
    const [, file] = /^\+\+\+ b\/(.*)$/.exec(line) ?? [];
    const [, begin] = /^@@ \S+ \+(\d+)/.exec(line) ?? [];
    if (file !== undefined) path = file;
    else if (begin !== undefined) number = Number(begin);
    else if (line.startsWith('+')) lines.push({ path, number: number++, text: line.slice(1) });
  }
  return lines;
}

function linesOf(path: string, text: string): AddedLine[] {
  return text.split('\n').map((line, at) => ({ path, number: at + 1, text: line }));
}

/** The text for people in a line: all of a document, but only comments and string literals of code. */
function proseOf(path: string, text: string): string {
  const trimmed = text.trim();
  if (!path.endsWith('.ts')) return withoutQuotes(trimmed.replace(/^(?:#+|-|\*|@echo) /, ''));
  if (/^(?:\/\/|\/?\*)/.test(trimmed)) return withoutQuotes(trimmed.replace(/^(?:\/\/|\/?\*+\/?) ?/, ''));
  const literals = trimmed.match(/'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`?|\/\/ .*$/g) ?? [];
  return literals.map((literal) => literal.replace(/^(?:\/\/ |['"`])/, '')).join('\n');
}

function withoutQuotes(text: string): string {
  return text.replaceAll(/`[^`]*`/g, '…');
}

if (import.meta.main) {
  const faults = wordFaults(addedLines(root));
  for (const fault of faults) console.log(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
