// Writes families of metrics to whoever scrapes: in slices, so that nothing else in the agent waits for more than one,
// and no faster than the other side takes them.

import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';
import type { MetricFamily } from '../agent/metric-family.ts';
import { Slice } from '../agent/slice.ts';
import { familyHead, numeral, sampleHead, type TextFormat } from './text-format.ts';

/** Most samples are small numbers: they need not be written anew each time. */
const SMALL: readonly string[] = Array.from({ length: 1_024 }, (_, number) => String(number));
/** Characters of one write. */
const PIECE = 64 * 1024;

/** Ends `sink` after the last family. Resolves as well where the other side has gone. */
export async function expose(
  families: Iterable<MetricFamily>,
  format: TextFormat,
  sink: Writable,
  { gzip = false } = {},
): Promise<void> {
  const target = gzip ? compressing(sink) : sink;
  const slice = new Slice();
  for (const piece of pieces(families, format)) {
    if (target.destroyed || sink.destroyed) return;
    // As bytes: a stream would go through a text more than once.
    if (!target.write(Buffer.from(piece))) await drained(target, sink);
    if (slice.isOver) await slice.breathe();
  }
  target.end();
}

/** The text, in pieces that each take less than a millisecond to make. */
export function* pieces(families: Iterable<MetricFamily>, format: TextFormat): Generator<string, void, void> {
  let text = '';
  for (const family of families) {
    // Also where it has no sample: that there is such a thing is worth knowing.
    text += familyHead(family, format);
    for (const part of family.parts) {
      const { labels, rows, value } = part;
      const labelled = sampleHead(family, part, false);
      const joined = labels === '' ? labelled : `${labelled},`;
      const bare = labels === '' ? sampleHead(family, part, true) : `${labelled}} `;
      for (const row of rows) {
        const number = value(row);
        // There is no such sample.
        if (Number.isNaN(number)) continue;
        const own = row.labels;
        const numeralText = SMALL[number] ?? numeral(number);
        text += own === '' ? `${bare}${numeralText}\n` : `${joined}${own}} ${numeralText}\n`;
        if (text.length < PIECE) continue;
        yield text;
        text = '';
      }
    }
  }
  if (format.isOpen) text += '# EOF\n';
  if (text !== '') yield text;
}

function compressing(sink: Writable): Writable {
  const gzip = createGzip({ level: constants.Z_BEST_SPEED, chunkSize: PIECE });
  // Whoever scrapes may go away at any time.
  gzip.on('error', () => sink.destroy());
  sink.once('close', () => gzip.destroy());
  gzip.pipe(sink);
  return gzip;
}

async function drained(target: Writable, sink: Writable): Promise<void> {
  const gone = new AbortController();
  const end = (): void => gone.abort();
  sink.once('close', end);
  try {
    if (!target.destroyed && !sink.destroyed) await once(target, 'drain', { signal: gone.signal });
  } catch {
    // Gone: the caller looks.
  } finally {
    sink.off('close', end);
  }
}
