import test from 'ava';
import fc from 'fast-check';
import { newSeries, type Series } from '../../../../agent/haproxy/stats/series.ts';
import { SeriesBlocks } from '../../../../agent/haproxy/stats/series-blocks.ts';

/** One reading: these are there; what is not in the blocks yet is added. */
function read(
  blocks: SeriesBlocks,
  known: Map<number, Series>,
  number: number,
  there: ReadonlySet<number>,
): void {
  for (const at of known.keys()) if (!there.has(at)) known.delete(at);
  for (const at of there) {
    let series = known.get(at);
    if (series === undefined) {
      series = newSeries('member');
      known.set(at, series);
      blocks.add(series);
    }
    series.seen = number;
  }
  blocks.settle(number);
}

const range = (length: number, from = 0): ReadonlySet<number> =>
  new Set(Array.from({ length }, (_, at) => from + at));

test('The blocks have every series of the last reading once, whatever comes and goes', (t) => {
  const readings = fc.array(fc.uniqueArray(fc.nat(2_000), { maxLength: 900 }), { maxLength: 8 });
  fc.assert(
    fc.property(readings, (all) => {
      const [blocks, known] = [new SeriesBlocks(), new Map<number, Series>()];
      for (const [at, there] of all.entries()) {
        read(blocks, known, at + 1, new Set(there));
        const rows = blocks.all.flatMap(({ rows }) => rows);
        t.is(rows.length, known.size);
        t.deepEqual(new Set(rows), new Set(known.values()));
        t.true(blocks.all.every(({ rows }) => rows.length > 0 && rows.length <= 256));
      }
    }),
    { numRuns: 50 },
  );
});

test('A block is the same array while it has the same rows, and only those that differ are others', (t) => {
  const [blocks, known] = [new SeriesBlocks(), new Map<number, Series>()];
  read(blocks, known, 1, range(1_000));
  const first = blocks.all.map(({ rows }) => rows);
  t.is(first.length, 4);
  read(blocks, known, 2, range(1_000));
  t.true(blocks.all.every(({ rows }, at) => rows === first[at]));

  const gone = range(1_000, 1);
  read(blocks, known, 3, gone);
  t.deepEqual(
    blocks.all.map(({ rows }, at) => rows === first[at]),
    [false, true, true, true],
    'The first has lost one, and has the new one in its place',
  );
  const third = blocks.all.map(({ rows }) => rows);
  blocks.relabel(known.get(300) as Series);
  read(blocks, known, 4, gone);
  t.deepEqual(
    blocks.all.map(({ rows }, at) => rows === third[at]),
    [true, false, true, true],
  );
});

test('What a reading that broke off has added is there after the next one, or gone', (t) => {
  const [blocks, known] = [new SeriesBlocks(), new Map<number, Series>()];
  read(blocks, known, 1, range(2));
  const [late, lost] = [newSeries('member'), newSeries('member')];
  for (const each of [late, lost]) {
    each.seen = 2;
    blocks.add(each);
  }
  t.is(blocks.all.flatMap(({ rows }) => rows).length, 2);
  late.seen = 3;
  read(blocks, known, 3, range(2));
  t.deepEqual(
    blocks.all.flatMap(({ rows }) => rows),
    [...known.values(), late],
  );
});

test('What changes after a block was settled is not of that reading', (t) => {
  const [blocks, known] = [new SeriesBlocks(), new Map<number, Series>()];
  read(blocks, known, 1, range(2));
  const [settled] = blocks.all;
  (known.get(1) as Series).changes[0] = 2;
  t.is(settled?.changes[0], 0);
  read(blocks, known, 2, range(2));
  t.is(blocks.all[0]?.changes[0], 2);
  t.is(blocks.all[0]?.rows, settled?.rows);
});
