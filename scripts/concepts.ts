// Compares the heads of files in agent/ and health/ with docs/glossary.md, so that a newcomer finds each idea of the house there:
// - the glossary has at most MAX_CONCEPTS words, and a head uses each of them;
// - a name that the code has for a thing, in words, and that heads of other files use, is in the glossary or a word of the field.
// Why: docs/design/decisions/0089-words-are-counted.md

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './check.ts';

export const MAX_CONCEPTS = 95;

/** Heads of so many files besides its own make a name an idea that is to be learnt. */
const FILES_THAT_USE_IT = 2;

export interface HeadedFile {
  readonly path: string;
  /** The comment that the file begins with, as one line. */
  readonly head: string;
  /** The names of its exported types and classes. */
  readonly types: readonly string[];
}

/** `glossary`: the document; `field`: lines of `OF WHOM: word, word`. Returns a line for each fault. */
export function conceptFaults(files: readonly HeadedFile[], glossary: string, field: string): string[] {
  const concepts = conceptsOf(glossary);
  const known = new Set([...concepts, ...fieldWords(field)]);
  const unused = concepts.filter((word) => !files.some(({ head }) => usesOf(word).test(head)));
  const named = namesInHeads(files).filter(({ name }) => ![...known].some((word) => isForm(word, name)));
  return [
    ...(concepts.length > MAX_CONCEPTS
      ? [
          `The glossary has ${concepts.length} words, more than ${MAX_CONCEPTS}: choose one of two that mean the same`,
        ]
      : []),
    ...unused.map((word) => `"${word}" is in the glossary, and no head of a file uses it`),
    ...named.map(
      ({ name, path, users }) =>
        `"${name}" (${path}) is used in the heads of ${users.join(', ')}: explain it in docs/glossary.md, or use another word there; a word of the field belongs into scripts/field-words.txt`,
    ),
  ];
}

/** The first cells of the glossary's table. */
export function conceptsOf(glossary: string): string[] {
  return [...glossary.matchAll(/^\| ([^|]+?) \|/gm)]
    .map(([, word = '']) => word.replace(/^\[([^\]]+)\].*/, '$1'))
    .filter((word) => word !== 'word' && !/^-+$/.test(word));
}

export function fieldWords(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => line.replace(/^[^:]*: /, '').split(', '));
}

/** `LandingOptions` is in words "landing options". */
function inWords(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ').toLowerCase();
}

interface NameInHeads {
  readonly name: string;
  readonly path: string;
  readonly users: readonly string[];
}

/** Exported types whose names in words stand in heads of other files. */
function namesInHeads(files: readonly HeadedFile[]): NameInHeads[] {
  const owners = new Map<string, string>();
  for (const { path, types } of files) for (const type of types) owners.set(inWords(type), path);
  return [...owners].flatMap(([name, path]) => {
    const pattern = usesOf(name);
    const users = files
      .filter((file) => file.path !== path && pattern.test(file.head))
      .map((file) => file.path);
    return users.length < FILES_THAT_USE_IT ? [] : [{ name, path, users }];
  });
}

/** The word and its forms: "drain", "draining"; "withdraw", "withdraws". */
function usesOf(word: string): RegExp {
  const stem = word.replace(/(?<=[a-z]{2})[ey]$/, '').replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(
    `(?<![\\w/])${stem.replaceAll(' ', '[ -]')}(?:e|y|s|es|ies|ed|ing|d|ment)?(?!\\w|\\.\\w|\\()`,
    'i',
  );
}

function isForm(word: string, name: string): boolean {
  const [found] = usesOf(word).exec(name) ?? [];
  return found?.length === name.length;
}

export function headedFiles(directory: string): HeadedFile[] {
  return ['agent', 'health'].flatMap((folder) =>
    readdirSync(join(directory, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(?:ts|js)$/.test(path))
      .map((path) => headedFile(join(folder, path), readFileSync(join(directory, folder, path), 'utf8'))),
  );
}

export function headedFile(path: string, text: string): HeadedFile {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  const head = lines.slice(0, end).map((line) => line.slice(2).trim());
  const types = [...text.matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm)];
  return {
    path,
    // The name of a file in brackets, and a link to a record, are no words.
    head: head.filter((line) => !line.startsWith('Why: ')).join(' '),
    types: types.map(([, name = '']) => name),
  };
}

if (import.meta.main) {
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const faults = conceptFaults(headedFiles(root), read('docs/glossary.md'), read('scripts/field-words.txt'));
  for (const fault of faults) console.log(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
