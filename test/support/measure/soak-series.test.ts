import test from 'ava';
import { SoakSeries, thirds } from './soak-series.ts';

/** What an agent had open in a pair's soak on a busy machine, in the order that looks most like a leak; there was none. */
const OPEN = [31, 31, 30, 28, 29, 28, 33, 31, 29, 42, 47, 34, 30, 55, 33, 35, 37, 43, 29];

test('thirds() leaves the warm-up out and is not moved by single values', (t) => {
  const values = [99, 99, 99, 1, 80, 1, 1, 2, 70, 2, 1, 4, 4, 90, 4];
  t.deepEqual(thirds(values), { first: 1, last: 4 });
});

test('SoakSeries tells a series that grows by more than it may from one that swings', (t) => {
  const series = new SoakSeries();
  for (let at = 0; at < 60; at++) {
    series.add('grows', at);
    series.add('swings', at % 7);
  }
  const flat = series.verdicts(() => 3).map(({ name, isFlat }) => [name, isFlat]);
  t.deepEqual(flat, [
    ['grows', false],
    ['swings', true],
  ]);
});

test('SoakSeries takes what is under way in most of the looks for no growth, and one left behind in five for one', (t) => {
  const series = new SoakSeries();
  for (const [at, value] of OPEN.entries()) {
    series.add('is under way', value);
    series.add('is left behind', value + Math.floor(at / 5));
  }
  const flat = series.verdicts(() => 2).map(({ name, isFlat }) => [name, isFlat]);
  t.deepEqual(flat, [
    ['is under way', true],
    ['is left behind', false],
  ]);
});
