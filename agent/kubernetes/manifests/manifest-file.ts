// Reads one manifest: the bytes of a YAML or JSON file, several documents perhaps, into objects and problems.
// In a long file a document whose text has not changed is not parsed again, so that an edit costs one document.
// Pure.

import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { messageOf } from '../../base/errors.ts';
import { parseYamlDocuments, type YamlError } from '../../base/yaml.ts';
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
  const text = withoutMark(bytes);
  const parts = splitDocuments(text);
  const documents = new Map<string, ParsedObjects>();
  const parsed = parts.map((part) => {
    if (parts.length === 1 || (text.length < LONG && known === undefined))
      return parseDocuments(path, text, part);
    const digest = hash('sha256', part.bytes, 'base64');
    const now = known?.get(digest) ?? parseDocuments(path, text, part);
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
  const unfinished = !broken && !looksLikeJson(text) && text.length > 0 && text.at(-1) !== NEWLINE;
  return { objects, problems, broken, unfinished, documents: documents.size === 0 ? noDocuments : documents };
}

/** Names an object among all kinds, as a message does. */
function identityOf({ kind, key }: Pick<KubernetesObject, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

export function fileProblem(path: string, message: string): Problem {
  return { object: path, reason: 'InvalidFile', message: `${path}: ${message}` };
}

/** Bytes, from which on a document is known again at the first change of the file: to parse it costs some hundred microseconds. */
const LONG = 32 * 1024;

const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

function withoutMark(bytes: Buffer): Buffer {
  const hasMark = bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  return hasMark ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes;
}

interface Part {
  readonly bytes: Buffer;
  /** In the bytes of the file. */
  readonly begin: number;
}

/**
 * At the lines that begin with `---`: those end a document wherever they stand, even in a quoted text
 * (YAML 1.2.2, 9.1.2 and `c-forbidden`). Directives and `...` bind documents together, a text with those stays whole.
 */
function splitDocuments(text: Buffer): readonly Part[] {
  if (BINDING.some((mark) => text.includes(`\n${mark}`) || text.toString('latin1', 0, mark.length) === mark))
    return [{ bytes: text, begin: 0 }];
  const parts: Part[] = [];
  let begin = 0;
  for (let at = nextMark(text, 0); at > 0; at = nextMark(text, at)) {
    parts.push({ bytes: text.subarray(begin, at), begin });
    begin = at;
  }
  parts.push({ bytes: text.subarray(begin), begin });
  return parts;
}

const BINDING = ['%', '...'];

/** Where the next line with the mark begins behind `from`; 0 where there is none. */
function nextMark(text: Buffer, from: number): number {
  for (let at = text.indexOf('\n---', from); at >= 0; at = text.indexOf('\n---', at + 1)) {
    const after = text[at + 4];
    if (after === undefined || after === 0x20 || after === 0x09 || after === 0x0a || after === 0x0d)
      return at + 1;
  }
  return 0;
}

function parseDocuments(path: string, text: Buffer, part: Part): ParsedObjects {
  const { bytes, begin } = part;
  if (looksLikeJson(bytes)) {
    const parsed = parseJson(bytes.toString('utf8'));
    if ('value' in parsed) return parseObject(parsed.value, path);
    // The YAML parser takes what people write by hand for JSON, and is slow on what machines write.
    if (bytes.length > LONGEST_LOOSE_JSON) return syntaxErrors(path, text, begin, [parsed.error]);
  }
  const { documents, errors } = parseYamlDocuments(bytes);
  if (errors.length > 0) return syntaxErrors(path, text, begin, errors.slice(0, 1));
  const parsed = documents.map(({ value }) => parseObject(value, path));
  return {
    objects: parsed.flatMap((each) => each.objects),
    problems: parsed.flatMap((each) => each.problems),
  };
}

/** Bytes. */
const LONGEST_LOOSE_JSON = 256 * 1024;

function looksLikeJson(text: Buffer): boolean {
  let at = 0;
  while (BLANKS.includes(text[at] ?? 0)) at++;
  return text[at] === 0x7b || text[at] === 0x5b;
}

/** Blank, tab, newline, carriage return. */
const BLANKS: readonly number[] = [0x20, 0x09, 0x0a, 0x0d];

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
