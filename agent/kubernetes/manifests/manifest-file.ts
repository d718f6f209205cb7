// Parses one manifest: the bytes of a YAML or JSON file, perhaps of several documents, into objects and problems.
// In a long file an unchanged document is not parsed again, so that an edit costs one document. Pure.

import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { parseJsonValues } from '../../base/json-values.ts';
import { countEntries } from '../../base/value-count.ts';
import { parseYamlDocuments, splitYaml, type YamlError, type YamlPart } from '../../base/yaml.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { misspellings } from '../misspellings.ts';
import type { KubernetesObject } from '../objects.ts';
import { type ParsedObjects, parseObject } from '../parse-object.ts';

export interface Manifest {
  /** `Service default/web` → the object. */
  readonly objects: ReadonlyMap<string, KubernetesObject>;
  readonly problems: readonly Problem[];
  /** Not all of it can be read: what it seems to have lost may be in the rest. */
  readonly broken: boolean;
  /** YAML ends in the middle of a line: a program may still be writing it. The brackets of JSON show its end. */
  readonly unfinished: boolean;
  /** Digest of a document's text → its objects; empty if the file is one document, or short and new. */
  readonly documents: ReadonlyMap<string, ParsedObjects>;
}

const NEWLINE = 0x0a;
/** Blank, tab, newline, carriage return. */
const BLANKS: readonly number[] = [0x20, 0x09, NEWLINE, 0x0d];
/** The documents of a shorter file are remembered from its second read on, because most files are read once. */
const LONG_FILE_BYTES = 32 * 1024;
/** The most lists and mappings in one file, because it is read without a pause: some seconds, and half a gigabyte of memory. */
export const MAX_ENTRIES = { json: 2_000_000, yaml: 500_000 } as const;
/** More are counted only. */
const MAX_PROBLEMS = 100;
/** Shorter text may be written by hand, as YAML with braces; longer text comes from a program. */
const MAX_HANDWRITTEN_BYTES = 256 * 1024;
/** Shared, because most files are short. */
const noDocuments: Manifest['documents'] = new Map();

/** `known`: the documents of the same file before (`Manifest.documents`), whose objects are used again. */
export function parseManifest(path: string, bytes: Buffer, known?: Manifest['documents']): Manifest {
  if (!isUtf8(bytes)) return refused(path, 'The text is not UTF-8');
  const parts = partsOf(bytes);
  if (parts === undefined) {
    const { json, yaml } = MAX_ENTRIES;
    const message = `The file has too many entries of lists and mappings: at most ${yaml} in YAML, or ${json} in JSON, can be in one file`;
    return refused(path, message);
  }
  const documents = new Map<string, ParsedObjects>();
  const lineOf = lineFinder(bytes);
  const parsed = parts.map((part) => {
    const parse = () => parseDocuments(path, part.bytes, () => lineOf(part.begin));
    if (parts.length === 1 || (bytes.length < LONG_FILE_BYTES && known === undefined)) return parse();
    const digest = hash('sha256', part.bytes, 'base64');
    const now = known?.get(digest) ?? parse();
    // A document with problems is parsed each time: an edit of another document may move their lines.
    if (now.problems.length === 0) documents.set(digest, now);
    return now;
  });
  const problems = parsed.flatMap((each) => each.problems);
  const broken = problems.some(({ reason }) => reason === 'InvalidFile' || reason === 'InvalidObject');
  const objects = new Map<string, KubernetesObject>();
  for (const object of parsed.flatMap((each) => each.objects)) {
    const identity = identityOf(object);
    if (!objects.has(identity)) objects.set(identity, object);
    else {
      const message = `${path}: ${identity} is in this file twice: the first one counts`;
      problems.push({ object: identity, reason: 'DuplicateObject', message });
    }
  }
  const last = parts.at(-1)?.bytes;
  const unfinished = !broken && last !== undefined && last.at(-1) !== NEWLINE && !looksLikeJson(last);
  return {
    objects,
    problems: firstOf(path, problems),
    broken,
    unfinished,
    documents: documents.size === 0 ? noDocuments : documents,
  };
}

function refused(path: string, message: string): Manifest {
  const problems = [fileProblem(path, message)];
  return { objects: new Map(), problems, broken: true, unfinished: false, documents: noDocuments };
}

/** The documents of the text; undefined if they have too many entries. */
function partsOf(bytes: Buffer): readonly YamlPart[] | undefined {
  const parts: YamlPart[] = [];
  let share = 0;
  for (const part of splitYaml(bytes)) {
    share += countEntries(part.bytes) / MAX_ENTRIES[isSurelyJson(part.bytes) ? 'json' : 'yaml'];
    if (share > 1) return undefined;
    parts.push(part);
  }
  return parts;
}

function firstOf(path: string, problems: readonly Problem[]): readonly Problem[] {
  const others = problems.length - MAX_PROBLEMS;
  if (others <= 0) return problems;
  return [...problems.slice(0, MAX_PROBLEMS), fileProblem(path, `The file has ${others} more problems`)];
}

/** `Service default/web`. */
function identityOf({ kind, key }: Pick<KubernetesObject, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

export function fileProblem(path: string, message: string): Problem {
  return { object: path, reason: 'InvalidFile', message: `${path}: ${message}` };
}

/** `lineAbove()`: the number of lines above this part of the file. */
function parseDocuments(path: string, bytes: Buffer, lineAbove: () => number): ParsedObjects {
  if (looksLikeJson(bytes)) {
    const json = parseJsonValues(bytes.toString('utf8'));
    if ('values' in json) return objectsOf(json.values, path, bytes.length);
    if (isSurelyJson(bytes)) return syntaxError(path, lineAbove(), json.error);
  }
  const { documents, errors } = parseYamlDocuments(bytes);
  if (errors[0] !== undefined) return syntaxError(path, lineAbove(), errors[0]);
  return objectsOf(
    documents.map(({ value }) => value),
    path,
    bytes.length,
  );
}

function objectsOf(values: readonly unknown[], path: string, size: number): ParsedObjects {
  const parsed = values.map((value) => parseObject(value, path));
  const hints = size <= MAX_HANDWRITTEN_BYTES ? values.flatMap((value) => misspellings(value, path)) : [];
  return {
    objects: parsed.flatMap((each) => each.objects.map(withoutController)),
    problems: [...parsed.flatMap((each) => each.problems), ...hints],
  };
}

/** The author of a manifest is the operator of the host, whichever controller has written the status of the copy. */
function withoutController(object: KubernetesObject): KubernetesObject {
  return object.kind === 'Service' && object.hasForeignStatus
    ? { ...object, hasForeignStatus: false }
    : object;
}

/** It is not read as YAML. */
function isSurelyJson(text: Buffer): boolean {
  return text.length > MAX_HANDWRITTEN_BYTES && looksLikeJson(text);
}

function looksLikeJson(text: Buffer): boolean {
  let at = 0;
  while (BLANKS.includes(text[at] ?? 0)) at++;
  return text[at] === 0x7b || text[at] === 0x5b;
}

function syntaxError(path: string, lineAbove: number, error: YamlError): ParsedObjects {
  const place = `${path}:${lineAbove + error.line}:${error.column}`;
  return {
    objects: [],
    problems: [{ object: path, reason: 'InvalidFile', message: `${place}: ${error.message}` }],
  };
}

/** Gives the number of lines above an offset; the offsets must ascend, so that many errors cost one pass. */
function lineFinder(text: Buffer): (offset: number) => number {
  let lines = 0;
  let next = text.indexOf(NEWLINE);
  return (offset) => {
    for (; next >= 0 && next < offset; next = text.indexOf(NEWLINE, next + 1)) lines++;
    return lines;
  };
}
