import test from 'ava';
import { lostSince } from '../../../../agent/report/answers/lost-cluster.ts';

const HOUR = 3_600_000;
const startedAt = new Date(100 * HOUR);
const away = { isSynced: true, fault: 'No server answers', lastAnswer: 110 * HOUR };
const terms = { startedAt, afterMs: 24 * HOUR, now: 134 * HOUR };

test('A cluster is lost once no API server has answered for the time of the setting', (t) => {
  t.is(lostSince(away, { ...terms, now: 134 * HOUR - 1 }), 0);
  t.is(lostSince(away, terms), 110 * HOUR);
});

test('Before the first answer the time counts from the start of the agent', (t) => {
  const never = { isSynced: false, fault: 'No server answers', lastAnswer: 0 };
  t.is(lostSince(never, { ...terms, now: 124 * HOUR - 1 }), 0);
  t.is(lostSince(never, { ...terms, now: 124 * HOUR }), 100 * HOUR);
});

test('A cluster is not lost while its API server has no fault, without a cluster, or with clusterLostAfter 0', (t) => {
  t.is(lostSince({ ...away, fault: '' }, terms), 0);
  t.is(lostSince(undefined, terms), 0);
  t.is(lostSince(away, { ...terms, afterMs: 0 }), 0);
});
