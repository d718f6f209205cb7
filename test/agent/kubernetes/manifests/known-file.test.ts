import test from 'ava';
import { LossPolicy } from '../../../../agent/kubernetes/manifests/known-file.ts';

test('ends() is after the delay, and twenty times later for a doubted loss', (t) => {
  const policy = new LossPolicy(100);
  t.is(policy.ends({ since: 1_000, doubted: false }), 1_100);
  t.is(policy.ends({ since: 1_000, doubted: true }), 3_000);
});

test('fileReturned() restarts the time of doubted losses only', (t) => {
  const policy = new LossPolicy(100);
  policy.fileReturned(2_500);
  t.is(policy.ends({ since: 1_000, doubted: true }), 4_500);
  t.is(policy.ends({ since: 1_000, doubted: false }), 1_100);
  t.is(policy.ends({ since: 2_600, doubted: true }), 4_600);
});
