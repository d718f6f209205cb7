import test from 'ava';
import { backoff, retryAfter } from '../../../agent/base/backoff.ts';

test('backoff() doubles from 0.8 s to 30 s, with jitter of a half', (t) => {
  t.deepEqual(
    [1, 2, 3, 6, 7, 1000].map((attempt) => backoff(attempt, () => 1)),
    [800, 1600, 3200, 25_600, 30_000, 30_000],
  );
  t.is(
    backoff(1, () => 0),
    400,
  );
});

test('retryAfter() reads seconds and nothing else, and does not wait for hours', (t) => {
  t.deepEqual(
    ['1', '30', '99999', '-1', '1.5', 'Fri, 20 Nov 2026 12:00:00 GMT', ''].map(retryAfter),
    [1000, 30_000, 120_000, 0, 0, 0, 0],
  );
  t.is(retryAfter(undefined), 0);
});
