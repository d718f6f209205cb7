import test from 'ava';
import { apiBackoffMs, retryAfter } from '../../../../agent/kubernetes/api/api-answer.ts';

test('apiBackoffMs() doubles from 0.8 s to 30 s, with jitter of a half', (t) => {
  t.deepEqual(
    [1, 2, 6, 7, 1000].map((failures) => apiBackoffMs(failures, () => 1)),
    [800, 1600, 25_600, 30_000, 30_000],
  );
  t.is(
    apiBackoffMs(1, () => 0),
    400,
  );
});

test('retryAfter() reads seconds and nothing else, and at most two minutes', (t) => {
  t.deepEqual(
    ['1', '30', '99999', '-1', '1.5', 'Fri, 20 Nov 2026 12:00:00 GMT', ''].map(retryAfter),
    [1000, 30_000, 120_000, 0, 0, 0, 0],
  );
  t.is(retryAfter(undefined), 0);
});
