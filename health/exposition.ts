// Writes families of metrics to whoever scrapes: in slices, so that nothing else in the agent waits for more than one,
// and no faster than the other side takes them.

import type { Writable } from 'node:stream';
import type { MetricFamily, MetricPart } from '../agent/base/metric-family.ts';
import { BESIDE_TRAFFIC, Slice } from '../agent/base/slice.ts';
import { GzipFile, packed, type Segment } from './gzip-segments.ts';
import type { KeptSamples } from './kept-samples.ts';
import { type Filling, lineHeads, lookUp, writeLines } from './sample-lines.ts';
import { familyHead, type TextFormat } from './text-format.ts';

/** Bytes of one write, and of text that is made or packed at a stretch: a fraction of a millisecond. */
const PIECE = 64 * 1024;
/** Bytes of a piece that has become longer by being packed. */
const LONGEST = PIECE + PIECE / 8;
/**
 * Milliseconds of a slice, which is what a connection through HAProxy may have to wait for where there is no other
 * processor, once so many short ones have shown that there is much to write: all pauses together may not take long.
 */
const LONG_SLICE = 2;
const SHORT_SLICES = 12;
/** Numbers that are looked up at a time. */
const RUN = 256;
/** Bytes of a character at most. */
const WIDEST = 3;

/**
 * Ends `sink` after the last family. Resolves as well where the other side has gone. Packed with gzip where `kept` is
 * given, which has what is still as it was packed before.
 */
export async function expose(
  families: Iterable<MetricFamily>,
  format: TextFormat,
  sink: Writable,
  kept?: KeptSamples,
): Promise<void> {
  const gone = new Promise<void>((resolve) => sink.once('close', resolve));
  let slice = new Slice(BESIDE_TRAFFIC);
  let slices = 0;
  const write = async (bytes: Buffer): Promise<void> => {
    const taken = new Promise<void>((resolve) => sink.write(bytes, () => resolve()));
    // What was taken is written over.
    await Promise.race([taken, gone]);
  };
  // Each is copied at once: what it lies in may be somebody else's by the time that the other side has taken it.
  const into: Filling = { memory: Buffer.allocUnsafeSlow(PIECE + LONGEST), at: 0 };
  const parts = kept === undefined ? pieces(families, format) : packedPieces(families, format, kept);
  for (const bytes of parts) {
    into.at += bytes.copy(into.memory, into.at);
    if (into.at >= PIECE) {
      await write(into.memory.subarray(0, into.at));
      into.at = 0;
    }
    if (sink.destroyed) return;
    if (!slice.isOver) continue;
    await slice.pause();
    if (++slices === SHORT_SLICES) slice = new Slice(LONG_SLICE);
  }
  if (!sink.destroyed) sink.end(into.memory.subarray(0, into.at));
}

/** The text, in pieces that each take less than a millisecond to make; each is written over by the next one. */
export function* pieces(families: Iterable<MetricFamily>, format: TextFormat): Generator<Buffer, void, void> {
  const text = newText();
  for (const family of families) {
    yield* writeHead(text, family, format);
    for (const part of family.parts) yield* writePart(text, family, part);
  }
  yield* writeEnd(text, format);
}

/** The same, packed: blocks of rows that are kept by themselves, and what stands between them. */
function* packedPieces(
  families: Iterable<MetricFamily>,
  format: TextFormat,
  kept: KeptSamples,
): Generator<Buffer, void, void> {
  kept.touch();
  const file = new GzipFile();
  const add = (segment: Segment): Buffer => {
    file.follows(segment);
    return segment.bytes;
  };
  const text = newText();
  const scratch = Buffer.allocUnsafeSlow(PIECE);
  yield file.head;
  for (const family of families) {
    if (family.parts.some(({ asOf }) => asOf !== undefined)) {
      for (const bytes of rest(text)) yield add(packed(bytes));
      yield add(kept.text(familyHead(family, format)));
    } else for (const bytes of writeHead(text, family, format)) yield add(packed(bytes));
    for (const part of family.parts) {
      const { asOf } = part;
      if (asOf === undefined) {
        for (const bytes of writePart(text, family, part)) yield add(packed(bytes));
        continue;
      }
      for (const bytes of rest(text)) yield add(packed(bytes));
      for (const segment of kept.segments(family, part, asOf, scratch)) yield add(segment);
    }
  }
  for (const bytes of writeEnd(text, format)) yield add(packed(bytes));
  yield file.tail();
}

interface Text extends Filling {
  readonly numbers: Float64Array;
}

function newText(): Text {
  return { memory: Buffer.allocUnsafeSlow(PIECE), at: 0, numbers: new Float64Array(RUN) };
}

/** What has been written since the last piece. */
function* rest(text: Text): Generator<Buffer, void, void> {
  if (text.at === 0) return;
  yield text.memory.subarray(0, text.at);
  text.at = 0;
}

/** Also of a family that has no sample: that there is such a thing is worth knowing. */
function* writeHead(text: Text, family: MetricFamily, format: TextFormat): Generator<Buffer, void, void> {
  const head = familyHead(family, format);
  if (text.at + head.length * WIDEST > PIECE) yield* rest(text);
  text.at += text.memory.write(head, text.at);
}

function* writePart(text: Text, family: MetricFamily, part: MetricPart): Generator<Buffer, void, void> {
  const heads = lineHeads(family, part);
  const { rows } = part;
  for (let begin = 0; begin < rows.length; begin += RUN) {
    const end = Math.min(begin + RUN, rows.length);
    lookUp(part, begin, end - begin, text.numbers);
    for (let row = begin; row < end; ) {
      row = writeLines(heads, rows, text.numbers.subarray(row - begin), [row, end], text);
      if (row < end) yield* rest(text);
    }
  }
}

function* writeEnd(text: Text, { isOpen }: TextFormat): Generator<Buffer, void, void> {
  if (isOpen && text.at + END.length > PIECE) yield* rest(text);
  if (isOpen) text.at += text.memory.write(END, text.at);
  yield* rest(text);
}

const END = '# EOF\n';
