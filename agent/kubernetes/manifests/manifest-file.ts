// Parses one manifest: the bytes of a YAML or JSON file, perhaps of several documents, into objects and problems.
// In a long file an unchanged document is not parsed again, so that an edit costs one document. Pure.

import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { messageOf } from '../../base/errors.ts';
import { parseYamlDocuments, splitYaml, type YamlError, type YamlPart } from '../../base/yaml.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { KubernetesObject } from '../objects.ts';
import { type ParsedObjects, parseObject } from '../parse-object.ts';

export interface Manifest {
  /** `Service default/web` → the object. */
  readonly objects: ReadonlyMap<string, KubernetesObject>;
  readonly problems: readonly Problem[];
  /** A fault makes the whole file unusable, not only its own object. */
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
/** Shorter text that is not JSON may be YAML with braces, written by hand; longer text comes from a program. */
const MAX_LOOSE_JSON_BYTES = 256 * 1024;
/** Shared, because most files are short. */
const noDocuments: Manifest['documents'] = new Map();

/** `known`: the documents of the same file before (`Manifest.documents`), whose objects are used again. */
export function parseManifest(path: string, bytes: Buffer, known?: Manifest['documents']): Manifest {
  if (!isUtf8(bytes)) {
    const problems = [fileProblem(path, 'The text is not UTF-8')];
    return { objects: new Map(), problems, broken: true, unfinished: false, documents: noDocuments };
  }
  const parts = splitYaml(bytes);
  const documents = new Map<string, ParsedObjects>();
  const parsed = parts.map((part) => {
    if (parts.length === 1 || (bytes.length < LONG_FILE_BYTES && known === undefined))
      return parseDocuments(path, bytes, part);
    const digest = hash('sha256', part.bytes, 'base64');
    const now = known?.get(digest) ?? parseDocuments(path, bytes, part);
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
  return { objects, problems, broken, unfinished, documents: documents.size === 0 ? noDocuments : documents };
}

/** `Service default/web`. */
function identityOf({ kind, key }: Pick<KubernetesObject, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

export function fileProblem(path: string, message: string): Problem {
  return { object: path, reason: 'InvalidFile', message: `${path}: ${message}` };
}

function parseDocuments(path: string, text: Buffer, part: YamlPart): ParsedObjects {
  const { bytes, begin } = part;
  if (looksLikeJson(bytes)) {
    const parsed = parseJson(bytes.toString('utf8'));
    if ('value' in parsed) return parseObject(parsed.value, path);
    if (bytes.length > MAX_LOOSE_JSON_BYTES) return syntaxError(path, text, begin, parsed.error);
  }
  const { documents, errors } = parseYamlDocuments(bytes);
  if (errors[0] !== undefined) return syntaxError(path, text, begin, errors[0]);
  const parsed = documents.map(({ value }) => parseObject(value, path));
  return {
    objects: parsed.flatMap((each) => each.objects),
    problems: parsed.flatMap((each) => each.problems),
  };
}

function looksLikeJson(text: Buffer): boolean {
  let at = 0;
  while (BLANKS.includes(text[at] ?? 0)) at++;
  return text[at] === 0x7b || text[at] === 0x5b;
}

function parseJson(text: string): { readonly value: unknown } | { readonly error: YamlError } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    const message = messageOf(error);
    const [, line, column] = /\(line (\d+) column (\d+)\)/.exec(message) ?? [];
    const end = text.split('\n');
    return {
      error: {
        line: Number(line ?? end.length),
        column: Number(column ?? (end.at(-1) ?? '').length + 1),
        message,
      },
    };
  }
}

function syntaxError(path: string, text: Buffer, begin: number, error: YamlError): ParsedObjects {
  const { line, column, message } = error;
  let before = 0;
  for (let at = text.indexOf(NEWLINE); at >= 0 && at < begin; at = text.indexOf(NEWLINE, at + 1)) before++;
  const place = `${path}:${before + line}:${column}`;
  return {
    objects: [],
    problems: [{ object: path, reason: 'InvalidFile', message: `${place}: ${message}` }],
  };
}
