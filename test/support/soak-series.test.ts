import test from 'ava';
import { SoakSeries, thirds } from './soak-series.ts';

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
