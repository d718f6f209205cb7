import test from 'ava';
import { apiBackoffMs, waitAsked } from '../../../../agent/kubernetes/api/api-answer.ts';

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

test('waitAsked() reads seconds and nothing else, and at most two minutes', (t) => {
  const asked = (header: string) => waitAsked({ headers: { 'retry-after': header } });
  t.deepEqual(['1', '30', '99999', '0', '-1', '1.5', 'Fri, 20 Nov 2026 12:00:00 GMT', ''].map(asked), [
    1000,
    30_000,
    120_000,
    ...Array(5).fill(undefined),
  ]);
  t.is(waitAsked({ headers: {} }), undefined);
});
