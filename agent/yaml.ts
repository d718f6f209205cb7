// Reads YAML 1.2 as Kubernetes and our settings use it: several documents, unique keys, anchors within reason,
// no tags of anyone's own. What is plain is read here, many times as fast as the package yaml, which reads the rest;
// no other file imports that. Pure: faults are values.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import { messageOf } from './errors.ts';

export interface YamlDocuments {
  /** In order; empty documents give null. Only those before the first error are of use. */
  readonly documents: readonly { readonly value: unknown; readonly line: number }[];
  readonly errors: readonly YamlError[];
}

/** Lines and columns count from 1. */
export interface YamlError {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** More aliases than this, or more copies by aliases of aliases, is an attack (the "billion laughs"). */
const MOST_ALIASES = 100;
/** A broken text can have one per character. */
const MOST_ERRORS = 10;

/** Loaded by the first text that needs it: it takes 4 MB and 20 ms, and many an agent never meets such a text. */
const yamlPackage = (): typeof Yaml => createRequire(import.meta.url)('yaml');

export function parseYamlDocuments(text: string): YamlDocuments {
  const plain = parsePlainYaml(text);
  return plain === undefined ? parseFully(text) : { documents: [plain], errors: [] };
}

/** The same by the package alone; exported for the test that the two never differ. */
export function parseFully(text: string): YamlDocuments {
  const documents: { value: unknown; line: number }[] = [];
  const errors: YamlError[] = [];
  const { LineCounter, parseAllDocuments } = yamlPackage();
  const lines = new LineCounter();
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  try {
    const parsed = parseAllDocuments(text, {
      lineCounter: lines,
      prettyErrors: false,
      strict: true,
      uniqueKeys: true,
      stringKeys: true,
      merge: true,
      resolveKnownTags: false,
      logLevel: 'silent',
    });
    for (const document of parsed) {
      const { line } = place(document.contents?.range?.[0] ?? document.range[0]);
      // An unknown tag is only a warning to the package; to us it is a value that we would read wrongly.
      for (const fault of [...document.errors, ...document.warnings]) {
        errors.push({ ...place(fault.pos[0]), message: fault.message.replaceAll(/\s+/g, ' ') });
      }
      if (errors.length > 0) break;
      try {
        const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES });
        if (text.includes('*') && holdsItself(value, []))
          throw new Error('An alias stands inside its anchor');
        documents.push({ value, line });
      } catch (error) {
        errors.push({ line, column: 1, message: messageOf(error) });
        break;
      }
    }
  } catch (error) {
    // Thousands of levels of nesting overflow the stack.
    errors.push({ line: 1, column: 1, message: messageOf(error) });
  }
  return { documents, errors: errors.slice(0, MOST_ERRORS) };
}

/** A value that holds itself cannot be walked or written by those who get it. */
function holdsItself(value: unknown, above: readonly unknown[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (above.includes(value)) return true;
  const here = [...above, value];
  return Object.values(value).some((each) => holdsItself(each, here));
}

/**
 * The plain part of YAML that machines write and most people too: one document of block mappings and lists with
 * one-line values. undefined for whatever is not plainly so: flow style, anchors, tags, texts of several lines,
 * odd numbers, faults. `line` is where the content begins, from 1.
 */
export function parsePlainYaml(text: string): { readonly value: unknown; readonly line: number } | undefined {
  if (!/^[\n\x20-\x7e]*$/.test(text)) return undefined;
  const lines = contentLines(text);
  const first = lines[0];
  if (first === undefined || startsItem(first)) return undefined;
  const cursor = { lines, at: 0 };
  const value = readMapping(cursor, first.indent);
  return value === undefined || cursor.at < lines.length ? undefined : { value, line: first.number };
}

interface Line {
  readonly indent: number;
  /** Without the indent and without blanks at the end; never empty. */
  readonly content: string;
  readonly number: number;
}

interface Cursor {
  readonly lines: Line[];
  at: number;
}

/** Those with more than a comment. */
function contentLines(text: string): Line[] {
  const lines: Line[] = [];
  let number = 0;
  let isBegun = false;
  for (const whole of text.split('\n')) {
    number++;
    const content = whole.trim();
    if (content === '' || content.startsWith('#')) continue;
    const isMark = whole === '---' && !isBegun;
    isBegun = true;
    if (isMark) continue;
    lines.push({ indent: whole.length - whole.trimStart().length, content, number });
  }
  return lines;
}

// A key of one word, so that it needs no quotes; the longest that YAML allows without a "?" is 1024.
const ENTRY = /^([A-Za-z][A-Za-z0-9_./-]{0,300}):(?: +(.*))?$/;

function readMapping(cursor: Cursor, indent: number): Record<string, unknown> | undefined {
  const mapping: Record<string, unknown> = {};
  for (let line = cursor.lines[cursor.at]; line?.indent === indent; line = cursor.lines[cursor.at]) {
    const [, key, text] = ENTRY.exec(line.content) ?? [];
    if (key === undefined || Object.hasOwn(mapping, key)) return undefined;
    cursor.at++;
    const value = text === undefined ? readBelow(cursor, indent) : readScalar(text);
    if (value === undefined || isDeeper(cursor, indent)) return undefined;
    mapping[key] = value;
  }
  return mapping;
}

/** What a key without a value on its own line has: a block further in, a list at the same indent, or null. */
function readBelow(cursor: Cursor, indent: number): unknown {
  const line = cursor.lines[cursor.at];
  if (line === undefined || line.indent < indent) return null;
  if (startsItem(line)) return readList(cursor, line.indent);
  return line.indent > indent ? readMapping(cursor, line.indent) : null;
}

function readList(cursor: Cursor, indent: number): unknown[] | undefined {
  const list: unknown[] = [];
  for (let line = cursor.lines[cursor.at]; line?.indent === indent; line = cursor.lines[cursor.at]) {
    if (!startsItem(line)) break;
    const content = line.content.slice(1).trimStart();
    const item = readItem(cursor, {
      ...line,
      indent: indent + line.content.length - content.length,
      content,
    });
    if (item === undefined || isDeeper(cursor, indent)) return undefined;
    list.push(item);
  }
  return list;
}

function readItem(cursor: Cursor, line: Line): unknown {
  if (ENTRY.test(line.content)) {
    // The mapping begins behind the dash.
    cursor.lines[cursor.at] = line;
    return readMapping(cursor, line.indent);
  }
  cursor.at++;
  return line.content === '' ? undefined : readScalar(line.content);
}

function startsItem({ content }: Line): boolean {
  return content === '-' || content.startsWith('- ');
}

/** A line further in than where we are: the second line of a text, or a fault. */
function isDeeper(cursor: Cursor, indent: number): boolean {
  const next = cursor.lines[cursor.at];
  return next !== undefined && next.indent > indent;
}

// No character that has a meaning of its own, at the beginning or later.
const PLAIN =
  /^[A-Za-z0-9/_][A-Za-z0-9 /_.@%+=,()-]*(?::[A-Za-z0-9/_.@%+=,()-]+(?: [A-Za-z0-9/_.@%+=,()-]+)*)*$/;
const QUOTED = /^(?:"([^"\\]*)"|'([^']*)')$/;
const NUMBER = /^(?:0|[1-9]\d{0,14})$/;
// All that the core schema takes for a number (YAML 1.2.2, 10.3.2).
const ANY_NUMBER = /^(?:0o[0-7]+|0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)$/;
const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...['true', 'True', 'TRUE'].map((word) => [word, true] as const),
  ...['false', 'False', 'FALSE'].map((word) => [word, false] as const),
  ...['null', 'Null', 'NULL'].map((word) => [word, null] as const),
]);

function readScalar(text: string): unknown {
  if (NUMBER.test(text)) return Number(text);
  if (PLAIN.test(text)) {
    if (ANY_NUMBER.test(text)) return undefined;
    const word = WORDS.get(text);
    return word === undefined ? ownText(text) : word;
  }
  if (text === '[]') return [];
  if (text === '{}') return {};
  const [, double, single] = QUOTED.exec(text) ?? [];
  const quoted = double ?? single;
  return quoted === undefined ? undefined : ownText(quoted);
}

/** Longer texts are rare. */
const scratch = Buffer.alloc(256);

/** V8 makes a longer part of a text a view of it, and the view would keep the whole file in memory. */
function ownText(part: string): string {
  if (part.length < 13) return part;
  if (part.length > scratch.length) return Buffer.from(part, 'latin1').toString('latin1');
  return scratch.toString('latin1', 0, scratch.write(part, 'latin1'));
}
