import test from 'ava';
import { SoakSeries, thirds } from './soak-series.ts';

/** Real values of an agent without a leak on a busy machine, in the order that looks most like a leak. */
const OPEN = [31, 31, 30, 28, 29, 28, 33, 31, 29, 42, 47, 34, 30, 55, 33, 35, 37, 43, 29];

test('thirds() ignores the warm-up and single high values', (t) => {
  const values = [99, 99, 99, 1, 80, 1, 1, 2, 70, 2, 1, 4, 4, 90, 4];
  t.deepEqual(thirds(values), { first: 1, last: 4 });
});

test('SoakSeries distinguishes a series that grows by more than allowed from one that fluctuates', (t) => {
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

test('SoakSeries reports no growth for work in progress in most readings, and growth for a leak of one in five', (t) => {
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
