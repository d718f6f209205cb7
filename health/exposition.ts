// Writes families of metrics as text, in pieces of at most 64 KB that each take a fraction of a millisecond: as bytes
// into one piece of memory, because there may be hundreds of thousands of lines.

import type { MetricFamily, MetricPart } from '../agent/base/metric-family.ts';
import { familyHead, numeral, sampleHead, type TextFormat } from './text-format.ts';

/** What stands before the number, but for the row's own labels. */
interface LineHeads {
  readonly withLabels: Buffer;
  /** For a row that has no labels of its own. */
  readonly bare: Buffer;
}

const PIECE_BYTES = 64 * 1024;
const MAX_CHARACTER_BYTES = 3;
/** Of the longest number and what stands around it. */
const MAX_END_BYTES = 64;
/** The end of a line with a small number: most numbers are small. */
const SMALL_ENDS: readonly Buffer[] = Array.from({ length: 1_024 }, (_, number) =>
  Buffer.from(`} ${number}\n`),
);

/** Without the end of the text. The next piece overwrites the one before it. */
export function* pieces(families: Iterable<MetricFamily>, format: TextFormat): Generator<Buffer, void, void> {
  const memory = Buffer.allocUnsafeSlow(PIECE_BYTES);
  let at = 0;
  for (const family of families) {
    // Also of a family without samples: that there is such a metric is worth knowing.
    const head = familyHead(family, format);
    if (at + head.length * MAX_CHARACTER_BYTES > PIECE_BYTES) {
      yield memory.subarray(0, at);
      at = 0;
    }
    at += memory.write(head, at);
    for (const part of family.parts) {
      const heads = lineHeads(family, part);
      const length = heads.withLabels.length + MAX_END_BYTES;
      for (const row of part.rows) {
        const number = part.value(row);
        if (Number.isNaN(number)) continue;
        if (at + length + row.labels.length * MAX_CHARACTER_BYTES > PIECE_BYTES) {
          yield memory.subarray(0, at);
          at = 0;
        }
        at = writeLine(heads, row.labels, number, memory, at);
      }
    }
  }
  yield memory.subarray(0, at);
}

function lineHeads(family: MetricFamily, part: MetricPart): LineHeads {
  const labelled = sampleHead(family, part, false);
  return part.labels === ''
    ? { withLabels: Buffer.from(labelled), bare: Buffer.from(sampleHead(family, part, true)) }
    : { withLabels: Buffer.from(`${labelled},`), bare: Buffer.from(`${labelled}} `) };
}

/** Where the next line goes. */
function writeLine(heads: LineHeads, labels: string, number: number, memory: Buffer, begin: number): number {
  if (labels === '') {
    const at = copy(heads.bare, memory, begin);
    return at + memory.write(`${numeral(number)}\n`, at);
  }
  let at = copy(heads.withLabels, memory, begin);
  at += memory.write(labels, at);
  const small = SMALL_ENDS[number];
  if (small !== undefined) return copy(small, memory, at);
  return at + memory.write(`} ${numeral(number)}\n`, at);
}

/** For a few bytes this loop is faster than a call. */
function copy(bytes: Buffer, memory: Buffer, begin: number): number {
  let at = begin;
  for (let from = 0; from < bytes.length; from++) memory[at++] = bytes[from] as number;
  return at;
}
