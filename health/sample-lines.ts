// The lines of samples, as bytes into memory that is given: rows of one part of a family, whose numbers are looked up
// first. Nothing is left of them that the garbage collector would have to look at.

import type { MetricFamily, MetricPart, MetricRow } from '../agent/base/metric-family.ts';
import { numeral, sampleHead } from './text-format.ts';

/** Memory that is filled from its begin. */
export interface Filling {
  readonly memory: Buffer;
  /** Where the next byte goes. */
  at: number;
}

/** Samples of one kind: what stands before a row's own labels, and in place of them where it has none. */
export interface LineHeads {
  readonly joined: Buffer;
  readonly bare: Buffer;
}

/** Bytes of a character at most. */
const WIDEST = 3;
/** Bytes of the longest number and what stands around it. */
const LONGEST_END = 64;
/** Most samples are small numbers: what follows a line's labels is then there already. */
const SMALL: readonly Buffer[] = Array.from({ length: 1_024 }, (_, number) => Buffer.from(`} ${number}\n`));
const [ZERO, LF, SPACE, BRACE] = [48, 10, 32, 125];
/** Up to here numbers are written with the processor's own integers. */
const LARGEST = 2 ** 31;

/** By what their lines begin with: as many as there are metrics. */
const known = new Map<string, LineHeads>();

export function lineHeads(family: MetricFamily, part: MetricPart): LineHeads {
  const labelled = sampleHead(family, part, false);
  let heads = known.get(labelled);
  if (heads === undefined) {
    heads = {
      joined: Buffer.from(part.labels === '' ? labelled : `${labelled},`),
      bare: Buffer.from(part.labels === '' ? sampleHead(family, part, true) : `${labelled}} `),
    };
    known.set(labelled, heads);
  }
  return heads;
}

/** Looks up the numbers of `count` rows from `begin` on. */
export function lookUp(
  { rows, value }: MetricPart,
  begin: number,
  count: number,
  numbers: Float64Array,
): void {
  for (let at = 0; at < count; at++) numbers[at] = value(rows[begin + at]);
}

/**
 * Writes rows from `begin` to `end` for as long as there is room, their numbers being those from 0 on. The first row
 * that had none, or `end`.
 */
export function writeLines(
  { joined, bare }: LineHeads,
  rows: readonly MetricRow[],
  numbers: Float64Array,
  [begin, end]: readonly [begin: number, end: number],
  into: Filling,
): number {
  const { memory } = into;
  let { at } = into;
  let row = begin;
  for (; row < end; row++) {
    const number = numbers[row - begin] as number;
    // There is no such sample.
    if (Number.isNaN(number)) continue;
    const own = (rows[row] as MetricRow).labels;
    if (at + joined.length + own.length * WIDEST + LONGEST_END > memory.length) break;
    if (own === '') {
      at = put(bare, memory, at);
      at += memory.write(`${numeral(number)}\n`, at);
      continue;
    }
    at = put(joined, memory, at);
    at += memory.write(own, at);
    const small = SMALL[number];
    if (small !== undefined) at = put(small, memory, at);
    else if (number > 0 && number < LARGEST && Number.isInteger(number)) at = putInteger(number, memory, at);
    else at += memory.write(`} ${numeral(number)}\n`, at);
  }
  into.at = at;
  return row;
}

/** A few bytes: faster than a call for them. Where the next ones go. */
function put(bytes: Buffer, memory: Buffer, begin: number): number {
  let at = begin;
  for (let from = 0; from < bytes.length; from++) memory[at++] = bytes[from] as number;
  return at;
}

/** With what stands around it, and without a text of its own. */
function putInteger(number: number, memory: Buffer, begin: number): number {
  let end = begin + 2;
  for (let rest = number | 0; rest > 0; rest = (rest / 10) | 0) end++;
  memory[begin] = BRACE;
  memory[begin + 1] = SPACE;
  memory[end] = LF;
  let at = end;
  for (let rest = number | 0; rest > 0; ) {
    const tens = (rest / 10) | 0;
    memory[--at] = ZERO + rest - tens * 10;
    rest = tens;
  }
  return end + 1;
}
