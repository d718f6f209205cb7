// Reads YAML as kubectl does (sigs.k8s.io/yaml): booleans and octal numbers of YAML 1.1, merge keys, times as texts.
// Stricter in two ways: no duplicate keys, no tags of other types. Depth and aliases are limited. Writes values as YAML.
// Pure: mistakes are values. The only file that imports js-yaml.
// Why: docs/design/decisions/0025-yaml-as-kubectl.md

import {
  boolYaml11Tag,
  constructFromEvents,
  defineScalarTag,
  dump,
  EVENT_ID,
  type Event,
  FAILSAFE_SCHEMA,
  mapTag,
  mergeTag,
  NOT_RESOLVED,
  nullCoreTag,
  parseEvents,
  YAMLException,
} from 'js-yaml';
import { messageOf } from './errors.ts';

export interface YamlDocuments {
  /** In order, null for an empty document. Empty if there is an error. */
  readonly documents: readonly { readonly value: unknown; readonly line: number }[];
  /** At most one, the first. */
  readonly errors: readonly YamlError[];
}

/** `line` and `column` count from 1. */
export interface YamlError {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** The deepest nesting of collections. */
const MAX_DEPTH = 100;
/** In one document. */
const MAX_ALIASES = 100;
/** How many values the aliases of one text may add: aliases of aliases multiply. */
const MAX_ALIASED_VALUES = 10_000;
/** The names of aliases and tags in the library's messages: the text may be no YAML but a secret. */
const QUOTED_TEXT = /(?: !<| "|: ).*$/s;

/** A Buffer is UTF-8. */
export function parseYamlDocuments(text: string | Buffer): YamlDocuments {
  const source = text.toString();
  try {
    const events = parseEvents(source, { maxDepth: MAX_DEPTH });
    const values = constructFromEvents(events, { source, schema, maxAliases: MAX_ALIASES });
    if (events.some(({ type }) => type === EVENT_ID.ALIAS)) boundAliases(values, events.length);
    const starts = documentStarts(events);
    const documents = values.map((value, at) => ({
      value: asJson(value),
      line: lineOf(source, starts[at] ?? 0),
    }));
    return { documents, errors: [] };
  } catch (error) {
    return { documents: [], errors: [errorOf(error)] };
  }
}

/** Whole numbers as go-yaml reads them, after underscores are removed. */
const INTEGER = /^[-+]?(?:0[bB][01]+|0[oO]?[0-7]+|0[xX][\da-fA-F]+|0|[1-9]\d*)$/;
const DECIMAL = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;
const FIRST_OF_NUMBER = [...'+-.0123456789'];

/** As `resolve` in https://github.com/yaml/go-yaml/blob/v2.4.0/resolve.go. */
function wholeNumberOf(text: string): number | typeof NOT_RESOLVED {
  const plain = text.replaceAll('_', '');
  if (!INTEGER.test(plain)) return NOT_RESOLVED;
  const size = Number(plain.replace(/^[-+]/, '').replace(/^0(?=\d)/, '0o'));
  return plain.startsWith('-') ? -size : size;
}

function decimalOf(text: string): number | typeof NOT_RESOLVED {
  const plain = text.replaceAll('_', '');
  const number = DECIMAL.test(plain) ? Number(plain) : Number.NaN;
  return Number.isFinite(number) ? number : NOT_RESOLVED;
}

function numberTag(name: string, resolve: (text: string) => number | typeof NOT_RESOLVED) {
  return defineScalarTag(`tag:yaml.org,2002:${name}`, {
    implicit: true,
    implicitFirstChars: FIRST_OF_NUMBER,
    resolve,
    identify: () => false,
  });
}

const mappingTag: typeof mapTag = {
  ...mapTag,
  addPair: (mapping, key, value) =>
    typeof key === 'object'
      ? 'a list, a mapping or null cannot be a key'
      : mapTag.addPair(mapping, key, value),
};

const schema = FAILSAFE_SCHEMA.withTags(
  mappingTag,
  nullCoreTag,
  boolYaml11Tag,
  numberTag('int', wholeNumberOf),
  numberTag('float', decimalOf),
  mergeTag,
);

/** A value as YAML: lists and mappings, without what is undefined; a Map as a mapping. */
export function yamlText(value: unknown): string {
  const plain = JSON.parse(
    JSON.stringify(value, (_, each: unknown) => (each instanceof Map ? Object.fromEntries(each) : each)),
  );
  return dump(plain, { noRefs: true, lineWidth: 120 });
}

/** A copy by JSON, because parts of the parsed text would keep the whole text in memory. */
function asJson(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

/** Throws if aliases add too many values to the `size` values of the text. */
function boundAliases(values: readonly unknown[], size: number): void {
  const count = countOf(values, new Map());
  if (count === Number.POSITIVE_INFINITY) throw new Error('An alias is inside its own anchor');
  if (count > size + MAX_ALIASED_VALUES)
    throw new Error(`Excessive aliases: they add more than ${MAX_ALIASED_VALUES} values`);
}

/** The number of values in a value, itself included, with aliases resolved; Infinity if it contains itself. */
function countOf(value: unknown, counts: Map<object, number>): number {
  if (typeof value !== 'object' || value === null) return 1;
  const known = counts.get(value);
  if (known !== undefined) return known;
  counts.set(value, Number.POSITIVE_INFINITY);
  let count = 1;
  for (const each of Object.values(value)) count += countOf(each, counts);
  counts.set(value, count);
  return count;
}

/** The offset of the content of each document. */
function documentStarts(events: readonly Event[]): readonly number[] {
  return events.flatMap(({ type }, at) => (type === EVENT_ID.DOCUMENT ? [offsetOf(events[at + 1])] : []));
}

function offsetOf(event: Event | undefined): number {
  if (event === undefined) return 0;
  if ('valueStart' in event) return Math.max(event.valueStart, 0);
  return 'start' in event ? event.start : 0;
}

function lineOf(source: string, offset: number): number {
  let line = 1;
  for (let at = source.indexOf('\n'); at >= 0 && at < offset; at = source.indexOf('\n', at + 1)) line++;
  return line;
}

function errorOf(error: unknown): YamlError {
  const { reason, mark } =
    error instanceof YAMLException ? error : { reason: messageOf(error), mark: undefined };
  const message = mark === undefined ? reason : reason.replace(QUOTED_TEXT, '');
  return {
    line: (mark?.line ?? 0) + 1,
    column: (mark?.column ?? 0) + 1,
    message: message.charAt(0).toUpperCase() + message.slice(1),
  };
}

export interface YamlPart {
  readonly bytes: Buffer;
  /** Its offset in the whole text. */
  readonly begin: number;
}

/** A line of three dashes ends a document, even inside a quoted text (YAML 1.2.2, 9.1.2). */
const SEPARATOR = /^---(?:[ \t]*|[ \t]+#.*)(?:\r?\n|$)/gm;
/** Directives and `...` concern more than one document: a text with these is not split. */
const BINDING = /^(?:%|\.\.\.)/m;
const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

/**
 * Gives the documents of a text one by one, without separators and byte-order marks, so that each can be cached. It does
 * not split at dashes that are followed by content.
 */
export function* splitYaml(text: Buffer): Generator<YamlPart, void> {
  // Latin-1 has one character for each byte, so that an index is an offset.
  const characters = text.toString('latin1');
  let begin = 0;
  for (const { index, 0: line } of BINDING.test(characters) ? [] : characters.matchAll(SEPARATOR)) {
    yield* partOf(text, begin, index);
    begin = index + line.length;
  }
  yield* partOf(text, begin, text.length);
}

function partOf(text: Buffer, from: number, to: number): readonly YamlPart[] {
  const isMarked = text.subarray(from, from + BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const begin = isMarked ? from + BYTE_ORDER_MARK.length : from;
  return begin < to ? [{ bytes: text.subarray(begin, to), begin }] : [];
}
