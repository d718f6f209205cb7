// Reads the plain part of YAML that machines write and most people too: one document of block mappings and lists with
// one-line values, in printable ASCII. In one pass over the bytes, because a folder of thousands of manifests is read
// before anything is served. Pure, but for texts that it remembers.

export interface PlainYaml {
  readonly value: unknown;
  /** Where the content begins, from 1. */
  readonly line: number;
}

/**
 * undefined for whatever is not plainly so: flow style, anchors, tags, texts of several lines, odd numbers, faults;
 * and for what begins with a list, or has no content.
 */
export function parsePlainYaml(bytes: Buffer): PlainYaml | undefined {
  const cursor = cursorAt(bytes);
  if (!toFirstLine(cursor) || isAtItem(cursor)) return undefined;
  const { line } = cursor;
  const value = readMapping(cursor, cursor.indent);
  return value === undefined || cursor.indent !== OVER ? undefined : { value, line };
}

/** Whether there is nothing but comments. */
export function isBlankYaml(bytes: Buffer): boolean {
  const cursor = cursorAt(bytes);
  return toLine(cursor) && cursor.indent === OVER;
}

/** Stands at the first character of a line's content, or behind it while that is read. */
interface Cursor {
  readonly bytes: Buffer;
  readonly end: number;
  at: number;
  /** Of the content; `OVER` where there is no more. */
  indent: number;
  /** From 1. */
  line: number;
  depth: number;
}

function cursorAt(bytes: Buffer): Cursor {
  return { bytes, end: bytes.length, at: 0, indent: 0, line: 0, depth: 0 };
}

/** Less than any indent. */
const OVER = -1;
/** Deeper nesting is for the parser that does not mind. */
const DEEPEST = 64;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const HASH = 0x23;
const DASH = 0x2d;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
const ZERO = 0x30;
const NINE = 0x39;

/** What a byte may be, as bits. */
const LETTER = 1;
const IN_KEY = 2;
const BEGINS_TEXT = 4;
/** Has no meaning of its own in a text. */
const IN_TEXT = 8;
const PRINTABLE = 16;
const SORTS: readonly (readonly [number, RegExp])[] = [
  [LETTER, /[A-Za-z]/],
  [IN_KEY, /[A-Za-z0-9_./-]/],
  [BEGINS_TEXT, /[A-Za-z0-9/_]/],
  [IN_TEXT, /[A-Za-z0-9/_.@%+=,()-]/],
  [PRINTABLE, /[ -~]/],
];
const SORT = Uint8Array.from({ length: 256 }, (_, byte) =>
  SORTS.reduce((sort, [bit, which]) => (which.test(String.fromCharCode(byte)) ? sort | bit : sort), 0),
);

function sortOf(bytes: Buffer, at: number): number {
  return SORT[bytes[at] as number] as number;
}

/** False where there is none, or one that is not plain. One `---` may stand before it. */
function toFirstLine(cursor: Cursor): boolean {
  const { bytes } = cursor;
  if (!toLine(cursor)) return false;
  const isMark =
    cursor.indent === 0 &&
    bytes[cursor.at] === DASH &&
    bytes[cursor.at + 1] === DASH &&
    bytes[cursor.at + 2] === DASH;
  if (!isMark) return cursor.indent !== OVER;
  cursor.at += 3;
  if (cursor.at < cursor.end && bytes[cursor.at] !== NEWLINE) return false;
  cursor.at++;
  return toLine(cursor) && cursor.indent !== OVER;
}

/** From the beginning of a line to the next with more than a comment; false for a comment that is not plain. */
function toLine(cursor: Cursor): boolean {
  const { bytes, end } = cursor;
  let { at } = cursor;
  while (at < end) {
    cursor.line++;
    const begin = at;
    while (at < end && bytes[at] === SPACE) at++;
    if (at === end) break;
    if (bytes[at] === HASH) while (at < end && (sortOf(bytes, at) & PRINTABLE) !== 0) at++;
    else if (bytes[at] !== NEWLINE) {
      cursor.indent = at - begin;
      cursor.at = at;
      return true;
    }
    if (at < end && bytes[at] !== NEWLINE) return false;
    at++;
  }
  cursor.indent = OVER;
  cursor.at = end;
  return true;
}

/** Over blanks to the end of the line, and to the next one; false where anything else stands there. */
function endLine(cursor: Cursor): boolean {
  const { bytes, end } = cursor;
  while (cursor.at < end && bytes[cursor.at] === SPACE) cursor.at++;
  if (cursor.at < end && bytes[cursor.at] !== NEWLINE) return false;
  cursor.at++;
  return toLine(cursor);
}

function isAtItem({ bytes, end, at }: Cursor): boolean {
  return bytes[at] === DASH && (at + 1 === end || bytes[at + 1] === SPACE || bytes[at + 1] === NEWLINE);
}

function readMapping(cursor: Cursor, indent: number): Record<string, unknown> | undefined {
  const mapping: Record<string, unknown> = {};
  if (++cursor.depth > DEEPEST) return undefined;
  while (cursor.indent === indent) {
    const colon = keyEnd(cursor);
    if (colon === 0) return undefined;
    const key = knownKeys.text(cursor.bytes, cursor.at, colon);
    // What every object has by itself is no key that is plainly new.
    if (mapping[key] !== undefined) return undefined;
    cursor.at = colon + 1;
    const value = readValue(cursor, indent);
    if (value === undefined || cursor.indent > indent) return undefined;
    mapping[key] = value;
  }
  cursor.depth--;
  return mapping;
}

/** YAML allows 1024 without a "?". */
const LONGEST_KEY = 300;

/** Where the colon of the key stands that begins here: a word, so that it needs no quotes. 0 where there is none. */
function keyEnd({ bytes, end, at: begin }: Cursor): number {
  if ((sortOf(bytes, begin) & LETTER) === 0) return 0;
  let at = begin + 1;
  while (at < end && (sortOf(bytes, at) & IN_KEY) !== 0) at++;
  if (at === end || bytes[at] !== COLON || at - begin > LONGEST_KEY) return 0;
  return at + 1 === end || bytes[at + 1] === SPACE || bytes[at + 1] === NEWLINE ? at : 0;
}

/** Behind the colon of a key. */
function readValue(cursor: Cursor, indent: number): unknown {
  const { bytes, end } = cursor;
  while (cursor.at < end && bytes[cursor.at] === SPACE) cursor.at++;
  if (cursor.at < end && bytes[cursor.at] !== NEWLINE) return readScalar(cursor);
  return endLine(cursor) ? readBelow(cursor, indent) : undefined;
}

/** What a key without a value on its own line has: a block further in, a list at the same indent, or null. */
function readBelow(cursor: Cursor, indent: number): unknown {
  if (cursor.indent < indent) return null;
  if (isAtItem(cursor)) return readList(cursor, cursor.indent);
  return cursor.indent > indent ? readMapping(cursor, cursor.indent) : null;
}

function readList(cursor: Cursor, indent: number): unknown[] | undefined {
  const { bytes } = cursor;
  const list: unknown[] = [];
  if (++cursor.depth > DEEPEST) return undefined;
  while (cursor.indent === indent && isAtItem(cursor)) {
    const dash = cursor.at;
    cursor.at++;
    while (cursor.at < cursor.end && bytes[cursor.at] === SPACE) cursor.at++;
    if (cursor.at === cursor.end || bytes[cursor.at] === NEWLINE) return undefined;
    // A mapping begins behind the dash.
    cursor.indent = indent + cursor.at - dash;
    const item = keyEnd(cursor) === 0 ? readScalar(cursor) : readMapping(cursor, cursor.indent);
    if (item === undefined || cursor.indent > indent) return undefined;
    list.push(item);
  }
  cursor.depth--;
  return list;
}

/** To the end of the line. */
function readScalar(cursor: Cursor): unknown {
  const { bytes, at } = cursor;
  const first = bytes[at];
  if ((sortOf(bytes, at) & BEGINS_TEXT) !== 0) return readText(cursor);
  if (first === DOUBLE_QUOTE || first === SINGLE_QUOTE) return readQuoted(cursor, first);
  const isList = first === 0x5b && bytes[at + 1] === 0x5d;
  const isMapping = first === 0x7b && bytes[at + 1] === 0x7d;
  if (!isList && !isMapping) return undefined;
  cursor.at += 2;
  return endLine(cursor) ? (isList ? [] : {}) : undefined;
}

function readQuoted(cursor: Cursor, quote: number): unknown {
  const { bytes, end, at } = cursor;
  let close = at + 1;
  while (close < end && bytes[close] !== quote) {
    if ((sortOf(bytes, close) & PRINTABLE) === 0) return undefined;
    if (bytes[close] === BACKSLASH && quote === DOUBLE_QUOTE) return undefined;
    close++;
  }
  if (close === end) return undefined;
  cursor.at = close + 1;
  return endLine(cursor) ? knownTexts.text(bytes, at + 1, close) : undefined;
}

// All that the core schema takes for a number (YAML 1.2.2, 10.3.2).
const ANY_NUMBER = /^(?:0o[0-7]+|0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)$/;
const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...['true', 'True', 'TRUE'].map((word) => [word, true] as const),
  ...['false', 'False', 'FALSE'].map((word) => [word, false] as const),
  ...['null', 'Null', 'NULL'].map((word) => [word, null] as const),
]);
const SHORTEST_WORD = 4;
const LONGEST_WORD = 5;
/** More would not fit into a number. */
const MOST_DIGITS = 15;

function readText(cursor: Cursor): unknown {
  const { bytes, end, at } = cursor;
  let next = at;
  let last = at;
  let isNumber = true;
  let number = 0;
  for (; next < end && bytes[next] !== NEWLINE; next++) {
    const byte = bytes[next] as number;
    if (byte === SPACE) continue;
    if ((sortOf(bytes, next) & IN_TEXT) === 0) {
      // A colon within a word has no meaning of its own.
      if (byte !== COLON || next + 1 >= end || (sortOf(bytes, next + 1) & IN_TEXT) === 0) return undefined;
    }
    isNumber &&= byte >= ZERO && byte <= NINE && next - last < 2;
    number = number * 10 + byte - ZERO;
    last = next;
  }
  const length = last + 1 - at;
  cursor.at = next;
  if (!endLine(cursor)) return undefined;
  if (isNumber) {
    return length > MOST_DIGITS || (length > 1 && bytes[at] === ZERO) ? undefined : number;
  }
  const text = knownTexts.text(bytes, at, last + 1);
  const isOfDigit = (bytes[at] as number) <= NINE && (bytes[at] as number) >= ZERO;
  if (isOfDigit && ANY_NUMBER.test(text)) return undefined;
  if (length < SHORTEST_WORD || length > LONGEST_WORD) return text;
  const word = WORDS.get(text);
  return word === undefined ? text : word;
}

/**
 * Makes texts of bytes, each with memory of its own: V8 makes a part of a text a view of it, and the view would keep a
 * whole file. Of equal short ones that come again and again there is one copy; a text is forgotten for another of its place.
 */
class KnownTexts {
  readonly #places: string[];
  readonly #longest: number;

  /** `places`: a power of two. */
  constructor(places: number, longest: number) {
    this.#places = new Array<string>(places).fill('');
    this.#longest = longest;
  }

  text(bytes: Buffer, from: number, to: number): string {
    const length = to - from;
    if (length > this.#longest) return bytes.toString('latin1', from, to);
    let hash = length;
    for (let at = from; at < to; at++) hash = (hash * 31 + (bytes[at] as number)) | 0;
    hash = (hash ^ (hash >>> 15)) & (this.#places.length - 1);
    const known = this.#places[hash] as string;
    if (isText(known, bytes, from, length)) return known;
    const text = bytes.toString('latin1', from, to);
    this.#places[hash] = text;
    return text;
  }
}

function isText(text: string, bytes: Buffer, from: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let at = 0; at < length; at++) if (text.charCodeAt(at) !== bytes[from + at]) return false;
  return true;
}

const knownKeys = new KnownTexts(512, LONGEST_KEY);
const knownTexts = new KnownTexts(1024, 24);
