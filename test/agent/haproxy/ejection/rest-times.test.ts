import test from 'ava';
import { countOf, restMs, trialMs } from '../../../../agent/haproxy/ejection/rest-times.ts';

test('restMs() doubles the rest from half a second to a minute', (t) => {
  t.deepEqual([1, 2, 3, 7, 8, 50].map(restMs), [500, 1_000, 2_000, 32_000, 60_000, 60_000]);
});

test('trialMs() is a minute at first and ten at most', (t) => {
  t.deepEqual([1, 2, 4, 5, 50].map(trialMs), [60_000, 120_000, 480_000, 600_000, 600_000]);
});

test('countOf() begins again after a member was well for a minute and ten times its last rest', (t) => {
  t.is(countOf(undefined, 0), 1);
  t.is(countOf({ count: 1, endedAt: 0 }, 60_000), 2);
  t.is(countOf({ count: 1, endedAt: 0 }, 60_001), 1);
  t.is(countOf({ count: 7, endedAt: 0 }, 320_000), 8);
  t.is(countOf({ count: 7, endedAt: 0 }, 320_001), 1);
});
