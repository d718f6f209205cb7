// Reads one manifest: the bytes of a YAML or JSON file, several documents perhaps, into objects and problems.
// In a long file a document whose text has not changed is not parsed again, so that an edit costs one document.
// Pure.

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
  /** A fault that makes the whole file unfit for use, as against one that costs only its own object. */
  readonly broken: boolean;
  /** YAML that ends in the middle of a line: its writer may not be done. JSON shows by its brackets that it is. */
  readonly unfinished: boolean;
  /** Digest of a document's text → what it holds; empty where the file is one document, or short and new. */
  readonly documents: ReadonlyMap<string, ParsedObjects>;
}

/** Shared, because most files are short. */
const noDocuments: Manifest['documents'] = new Map();

/**
 * `known` is what the same file held before (`Manifest.documents`): equal documents are taken over. Of a short file they
 * are remembered from its second reading on, because most files are read once.
 */
export function parseManifest(path: string, bytes: Buffer, known?: Manifest['documents']): Manifest {
  if (!isUtf8(bytes)) {
    const problems = [fileProblem(path, 'The text is not UTF-8')];
    return { objects: new Map(), problems, broken: true, unfinished: false, documents: noDocuments };
  }
  const parts = splitYaml(bytes);
  const documents = new Map<string, ParsedObjects>();
  const parsed = parts.map((part) => {
    if (parts.length === 1 || (bytes.length < LONG_BYTES && known === undefined))
      return parseDocuments(path, bytes, part);
    const digest = hash('sha256', part.bytes, 'base64');
    const now = known?.get(digest) ?? parseDocuments(path, bytes, part);
    // Faults are not taken over: another document's edit may move their lines.
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
      const message = `${path}: ${identity} is in this file twice, the first one counts`;
      problems.push({ object: identity, reason: 'DuplicateObject', message });
    }
  }
  const last = parts.at(-1)?.bytes;
  const unfinished = !broken && last !== undefined && last.at(-1) !== NEWLINE && !looksLikeJson(last);
  return { objects, problems, broken, unfinished, documents: documents.size === 0 ? noDocuments : documents };
}

/** Names an object among all kinds, as a message does. */
function identityOf({ kind, key }: Pick<KubernetesObject, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

export function fileProblem(path: string, message: string): Problem {
  return { object: path, reason: 'InvalidFile', message: `${path}: ${message}` };
}

/** From this size on a document that has not changed is recognized at the first change of its file. */
const LONG_BYTES = 32 * 1024;

function parseDocuments(path: string, text: Buffer, part: YamlPart): ParsedObjects {
  const { bytes, begin } = part;
  if (looksLikeJson(bytes)) {
    const parsed = parseJson(bytes.toString('utf8'));
    if ('value' in parsed) return parseObject(parsed.value, path);
    // YAML takes what people write by hand for JSON. What machines write is long, and half of it is no YAML either.
    if (bytes.length > LONGEST_LOOSE_JSON_BYTES) return syntaxErrors(path, text, begin, [parsed.error]);
  }
  const { documents, errors } = parseYamlDocuments(bytes);
  if (errors.length > 0) return syntaxErrors(path, text, begin, errors.slice(0, 1));
  const parsed = documents.map(({ value }) => parseObject(value, path));
  return {
    objects: parsed.flatMap((each) => each.objects),
    problems: parsed.flatMap((each) => each.problems),
  };
}

const LONGEST_LOOSE_JSON_BYTES = 256 * 1024;

function looksLikeJson(text: Buffer): boolean {
  let at = 0;
  while (BLANKS.includes(text[at] ?? 0)) at++;
  return text[at] === 0x7b || text[at] === 0x5b;
}

const NEWLINE = 0x0a;
/** Blank, tab, newline, carriage return. */
const BLANKS: readonly number[] = [0x20, 0x09, NEWLINE, 0x0d];

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

function syntaxErrors(
  path: string,
  text: Buffer,
  begin: number,
  errors: readonly YamlError[],
): ParsedObjects {
  let before = 0;
  for (let at = text.indexOf(NEWLINE); at >= 0 && at < begin; at = text.indexOf(NEWLINE, at + 1)) before++;
  const problems = errors.map(({ line, column, message }): Problem => {
    const place = `${path}:${before + line}:${column}`;
    return { object: path, reason: 'InvalidFile', message: `${place}: ${message}` };
  });
  return { objects: [], problems };
}
