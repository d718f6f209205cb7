// Writes families of metrics to whoever scrapes: in slices, so that nothing else in the agent waits for more than one,
// and no faster than the other side takes them. Its bytes go into two pieces of memory that take turns, and nothing is
// left of them that the garbage collector would have to look at.

import type { Writable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';
import type { MetricFamily } from '../agent/metric-family.ts';
import { Slice } from '../agent/slice.ts';
import { familyHead, numeral, sampleHead, type TextFormat } from './text-format.ts';

/** Bytes of one write. */
const PIECE = 128 * 1024;
/** Most samples are small numbers: what follows a line's labels is then there already. */
const SMALL: readonly Buffer[] = Array.from({ length: 1_024 }, (_, number) => Buffer.from(`} ${number}\n`));
/** Bytes of a character at most. */
const WIDEST = 3;

/** Ends `sink` after the last family. Resolves as well where the other side has gone. */
export async function expose(
  families: Iterable<MetricFamily>,
  format: TextFormat,
  sink: Writable,
  { gzip = false } = {},
): Promise<void> {
  const target = gzip ? compressing(sink) : sink;
  const gone = new Promise<void>((resolve) => sink.once('close', resolve));
  const slice = new Slice();
  let [filled, other] = [newPiece(), newPiece()];
  for (const bytes of pieces(families, format, () => filled.memory)) {
    if (target.destroyed || sink.destroyed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    target.write(bytes, () => resolve());
    filled.taken = promise;
    [filled, other] = [other, filled];
    // One is being taken while the next one is filled.
    await Promise.race([filled.taken, gone]);
    if (slice.isOver) await slice.breathe();
  }
  target.end();
}

interface Piece {
  readonly memory: Buffer;
  /** Its bytes have been taken: it may be filled again. */
  taken: Promise<void>;
}

function newPiece(): Piece {
  return { memory: Buffer.allocUnsafeSlow(PIECE), taken: Promise.resolve() };
}

/** The text, in pieces that each take about a millisecond to make, in memory that `next` gives for each of them. */
export function* pieces(
  families: Iterable<MetricFamily>,
  format: TextFormat,
  next: () => Buffer = () => Buffer.allocUnsafeSlow(PIECE),
): Generator<Buffer, void, void> {
  let memory = next();
  let at = 0;
  for (const family of families) {
    // Also where it has no sample: that there is such a thing is worth knowing.
    const head = familyHead(family, format);
    if (at + head.length * WIDEST > memory.length) {
      yield memory.subarray(0, at);
      [memory, at] = [next(), 0];
    }
    at += memory.write(head, at);
    for (const part of family.parts) {
      const { labels, rows, value } = part;
      const labelled = sampleHead(family, part, false);
      const joined = Buffer.from(labels === '' ? labelled : `${labelled},`);
      const bare = Buffer.from(labels === '' ? sampleHead(family, part, true) : `${labelled}} `);
      for (const row of rows) {
        const number = value(row);
        // There is no such sample.
        if (Number.isNaN(number)) continue;
        const own = row.labels;
        if (at + joined.length + own.length * WIDEST + LONGEST_END > memory.length) {
          yield memory.subarray(0, at);
          [memory, at] = [next(), 0];
        }
        if (own === '') {
          at = put(bare, memory, at);
          at += memory.write(`${numeral(number)}\n`, at);
          continue;
        }
        at = put(joined, memory, at);
        at += memory.write(own, at);
        const end = SMALL[number];
        if (end === undefined) at += memory.write(`} ${numeral(number)}\n`, at);
        else at = put(end, memory, at);
      }
    }
  }
  if (at > 0) yield memory.subarray(0, at);
  if (format.isOpen) yield Buffer.from('# EOF\n');
}

/** Bytes of the longest number and what stands around it. */
const LONGEST_END = 64;

/** A few bytes: faster than a call for them. Where the next ones go. */
function put(bytes: Buffer, memory: Buffer, begin: number): number {
  let at = begin;
  for (let from = 0; from < bytes.length; from++) memory[at++] = bytes[from] as number;
  return at;
}

function compressing(sink: Writable): Writable {
  const gzip = createGzip({ level: constants.Z_BEST_SPEED, chunkSize: PIECE });
  // Whoever scrapes may go away at any time.
  gzip.on('error', () => sink.destroy());
  sink.once('close', () => gzip.destroy());
  gzip.pipe(sink);
  return gzip;
}
