// Reads one manifest: the bytes of a YAML or JSON file, several documents perhaps, into objects and problems.
// A document whose text has not changed is not parsed again, so that an edit of a long file costs one document.
// Pure.

import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { messageOf } from '../../errors.ts';
import type { Problem } from '../../model.ts';
import { parseYamlDocuments, type YamlError } from '../../yaml.ts';
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
  /** Digest of a document's text → what it holds; empty where the file is one document. */
  readonly documents: ReadonlyMap<string, ParsedObjects>;
}

/** Of a file that is one document; shared, because most are. */
export const noDocuments: Manifest['documents'] = new Map();

/** `known` is what the same file held before (`Manifest.documents`): equal documents are taken over. */
export function parseManifest(path: string, bytes: Buffer, known = noDocuments): Manifest {
  if (!isUtf8(bytes)) {
    const problems = [fileProblem(path, 'The text is not UTF-8')];
    return { objects: new Map(), problems, broken: true, unfinished: false, documents: noDocuments };
  }
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  const parts = splitDocuments(text);
  const documents = new Map<string, ParsedObjects>();
  const parsed = parts.map((part) => {
    if (parts.length === 1) return parseDocuments(path, part);
    const digest = hash('sha256', part.text, 'base64');
    const now = known.get(digest) ?? parseDocuments(path, part);
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
  const unfinished = !broken && !looksLikeJson(text) && text !== '' && !text.endsWith('\n');
  return { objects, problems, broken, unfinished, documents: documents.size === 0 ? noDocuments : documents };
}

/** Names an object among all kinds, as a message does. */
function identityOf({ kind, key }: Pick<KubernetesObject, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

export function fileProblem(path: string, message: string): Problem {
  return { object: path, reason: 'InvalidFile', message: `${path}: ${message}` };
}

interface Part {
  readonly text: string;
  /** The line it begins at, from 1. */
  readonly line: number;
}

/**
 * At the lines that begin with `---`: those end a document wherever they stand, even in a quoted text
 * (YAML 1.2.2, 9.1.2 and `c-forbidden`). Directives and `...` bind documents together, a text with those stays whole.
 */
function splitDocuments(text: string): readonly Part[] {
  if (/^(?:%|\.\.\.)/m.test(text)) return [{ text, line: 1 }];
  const parts: Part[] = [];
  let begin = 0;
  let line = 1;
  for (const { index } of text.matchAll(/^---(?=[ \t\r\n]|$)/gm)) {
    if (index === 0) continue;
    const part = text.slice(begin, index);
    parts.push({ text: part, line });
    line += part.split('\n').length - 1;
    begin = index;
  }
  parts.push({ text: text.slice(begin), line });
  return parts;
}

function parseDocuments(path: string, part: Part): ParsedObjects {
  if (looksLikeJson(part.text)) {
    const parsed = parseJson(part.text);
    if ('value' in parsed) return parseObject(parsed.value, path);
    // The YAML parser takes what people write by hand for JSON, and is slow on what machines write.
    if (part.text.length > LONGEST_LOOSE_JSON) return syntaxErrors(path, part, [parsed.error]);
  }
  const { documents, errors } = parseYamlDocuments(part.text);
  if (errors.length > 0) return syntaxErrors(path, part, errors.slice(0, 1));
  const parsed = documents.map(({ value }) => parseObject(value, path));
  return {
    objects: parsed.flatMap((each) => each.objects),
    problems: parsed.flatMap((each) => each.problems),
  };
}

/** Characters. */
const LONGEST_LOOSE_JSON = 256 * 1024;

function looksLikeJson(text: string): boolean {
  return /^\s*[{[]/.test(text);
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

function syntaxErrors(path: string, part: Part, errors: readonly YamlError[]): ParsedObjects {
  const problems = errors.map(({ line, column, message }): Problem => {
    const place = `${path}:${part.line + line - 1}:${column}`;
    return { object: path, reason: 'InvalidFile', message: `${place}: ${message}` };
  });
  return { objects: [], problems };
}
