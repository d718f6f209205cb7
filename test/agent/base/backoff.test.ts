import test from 'ava';
import { backoffMs } from '../../../agent/base/backoff.ts';

test('backoffMs() doubles from the first wait to the longest', (t) => {
  const terms = { firstMs: 800, mostMs: 30_000 };
  t.deepEqual(
    [0, 1, 2, 3, 6, 7, 1000].map((failures) => backoffMs(failures, terms)),
    [800, 800, 1600, 3200, 25_600, 30_000, 30_000],
  );
});

test('backoffMs() takes off up to a half at random', (t) => {
  t.is(backoffMs(1, { firstMs: 800, mostMs: 30_000, random: () => 0 }), 400);
  t.is(backoffMs(1, { firstMs: 800, mostMs: 30_000, random: () => 1 }), 800);
});
