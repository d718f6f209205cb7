// Reads YAML as kubectl does, which turns it into JSON (sigs.k8s.io/yaml): the words and octal numbers of YAML 1.1,
// merge keys, times as texts. Stricter in two ways: a key may be there only once, and no tag may name another type.
// Bounded in depth and in what aliases add. Pure: faults are values. The only file that imports js-yaml.

import {
  boolYaml11Tag,
  constructFromEvents,
  defineScalarTag,
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
  /** In order; empty documents give null. None if there is an error. */
  readonly documents: readonly { readonly value: unknown; readonly line: number }[];
  /** The first error, or nothing. */
  readonly errors: readonly YamlError[];
}

/** Lines and columns count from 1. */
export interface YamlError {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Collections inside one another. */
const MAX_DEPTH = 100;
/** Of one document. */
const MAX_ALIASES = 100;
/** Values that the aliases of one text may add to it: aliases of aliases multiply. */
const MAX_ALIASED_VALUES = 10_000;
/** Characters of a message: it may name what the text calls an alias or a tag. */
const MAX_MESSAGE_LENGTH = 200;

/** `text` as such or in UTF-8. */
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

/** go-yaml's whole numbers, without underscores. */
const INTEGER = /^[-+]?(?:0[bB][01]+|0[oO]?[0-7]+|0[xX][\da-fA-F]+|0|[1-9]\d*)$/;
const DECIMAL = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;
const FIRST_OF_NUMBER = [...'+-.0123456789'];

/** `resolve` in https://github.com/yaml/go-yaml/blob/v2.4.0/resolve.go, without base 60, as there. */
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
    typeof key === 'object' ? 'a list, a mapping or null is no key' : mapTag.addPair(mapping, key, value),
};

const schema = FAILSAFE_SCHEMA.withTags(
  mappingTag,
  nullCoreTag,
  boolYaml11Tag,
  numberTag('int', wholeNumberOf),
  numberTag('float', decimalOf),
  mergeTag,
);

/** What JSON makes of it shares nothing with the text, which a part of it would keep in memory. */
function asJson(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

/** Throws if aliases add too much; `size` is that of the text, in about as many values. */
function boundAliases(values: readonly unknown[], size: number): void {
  const count = countOf(values, new Map());
  if (count === Number.POSITIVE_INFINITY) throw new Error('An alias stands inside its own anchor');
  if (count > size + MAX_ALIASED_VALUES)
    throw new Error(`Excessive aliases: they add more than ${MAX_ALIASED_VALUES} values`);
}

/** Values in a value, itself included, each alias counted as what it stands for; Infinity if it holds itself. */
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

/** Offsets of the content of each document. */
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
  const message = reason.slice(0, MAX_MESSAGE_LENGTH);
  return {
    line: (mark?.line ?? 0) + 1,
    column: (mark?.column ?? 0) + 1,
    message: message.charAt(0).toUpperCase() + message.slice(1),
  };
}
