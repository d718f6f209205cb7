import { Writable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import test from 'ava';
import fc from 'fast-check';
import type { MetricFamily, MetricRow } from '../../agent/base/metric-family.ts';
import { expose, pieces } from '../../health/exposition.ts';
import { KeptSamples } from '../../health/kept-samples.ts';
import { openMetrics, prometheusText, type TextFormat } from '../../health/text-format.ts';

interface Row extends MetricRow {
  readonly labels: string;
  readonly numbers: number[];
}

const row = (labels: string, ...numbers: number[]): Row => ({ labels, numbers });

/** Two families of blocks that are kept, with one between them that is not. */
function familiesOf(
  blocks: readonly (readonly Row[])[],
  loose: number,
  asOf = loose,
): readonly MetricFamily[] {
  const value = (at: number) => (each: unknown) => (each as Row).numbers[at] ?? Number.NaN;
  const kept = (name: string, labels: string, at: number): MetricFamily => ({
    name,
    type: 'gauge',
    help: name,
    parts: blocks.map((rows) => ({ labels, rows, asOf, value: value(at) })),
  });
  const rows = [{ labels: 'loose="1"' }];
  return [
    kept('first', '', 0),
    { name: 'loose', type: 'gauge', help: '', parts: [{ labels: '', rows, value: () => loose }] },
    kept('second', 'code="2xx"', 1),
  ];
}

async function exposed(
  families: readonly MetricFamily[],
  format: TextFormat,
  kept: KeptSamples,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _, done) {
      // What it has taken is written over.
      parts.push(Buffer.from(chunk));
      done();
    },
  });
  await expose(families, format, sink, kept);
  return Buffer.concat(parts);
}

function plain(families: readonly MetricFamily[], format: TextFormat): string {
  let text = '';
  for (const bytes of pieces(families, format)) text += bytes;
  return text;
}

test('What is packed says the same as the plain text, whatever changes from one scrape to the next', async (t) => {
  const number = fc.oneof(fc.constantFrom(0, 1, Number.NaN, -0, 1_024, 2 ** 40, 0.5), fc.nat());
  const step = fc.record({
    block: fc.nat(2),
    at: fc.nat(3),
    of: fc.nat(1),
    number,
    kind: fc.constantFrom('number', 'row', 'nothing', 'forget'),
    isOpen: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const kept = new KeptSamples();
      const blocks: (readonly Row[])[] = [[row('a="1"', 1, 2), row('a="2"', 3)], [row('', 4, 5)], []];
      for (const [loose, { block, at, of, number: now, kind, isOpen }] of steps.entries()) {
        const rows = blocks[block] ?? [];
        const changed = rows[at];
        if (kind === 'number' && changed !== undefined) changed.numbers[of] = now;
        if (kind === 'row')
          blocks[block] = [...rows.slice(0, at), row(`b="${loose}"`, now), ...rows.slice(at)];
        if (kind === 'forget') kept.forget();
        const format = isOpen ? openMetrics : prometheusText;
        const families = familiesOf(blocks, loose);
        t.is(gunzipSync(await exposed(families, format, kept)).toString(), plain(families, format));
      }
      kept.forget();
    }),
    { numRuns: 60 },
  );
});

test('A block that is the same is not packed again, and one in which a number is another one is', (t) => {
  const kept = new KeptSamples();
  const rows = [row('a="1"', 1), row('a="2"', 2)];
  const scratch = Buffer.alloc(64 * 1024);
  const segments = (asOf: number) => {
    const [family] = familiesOf([rows], 0) as [MetricFamily];
    const [part] = family.parts;
    if (part === undefined) throw new Error('No part');
    return kept.segments(family, part, asOf, scratch);
  };
  const first = segments(1);
  t.is(segments(2), first);
  (rows[1] as Row).numbers[0] = 7;
  t.is(segments(2), first, 'Nobody says that they have changed');
  const second = segments(3);
  t.not(second, first);
  t.is(second[0]?.bytes.buffer, first[0]?.bytes.buffer, 'The memory is used again');
  t.is(segments(4), second);
  kept.forget();
  t.not(segments(4), second);
  kept.forget();
});

test('What stands before samples is packed once, until all is forgotten', (t) => {
  const kept = new KeptSamples();
  const first = kept.text('# HELP a b\n');
  t.is(kept.text('# HELP a b\n'), first);
  kept.forget();
  t.not(kept.text('# HELP a b\n'), first);
});

test('A block that does not fit into one piece is packed in several', async (t) => {
  const kept = new KeptSamples();
  const rows = Array.from({ length: 1_000 }, (_, at) => row(`name="${'x'.repeat(300)}${at}"`, at));
  const families = familiesOf([rows], 0);
  const text = gunzipSync(await exposed(families, openMetrics, kept)).toString();
  t.true(text === plain(families, openMetrics));
  kept.forget();
});
