import test from 'ava';
import { LossPolicy } from '../../../../agent/kubernetes/manifests/known-file.ts';

test('What is missing is believed to be gone after the patience, and twenty times later where it is doubted', (t) => {
  const policy = new LossPolicy(100);
  t.is(policy.ends({ since: 1_000, doubted: false }), 1_100);
  t.is(policy.ends({ since: 1_000, doubted: true }), 3_000);
});

test('A file that comes back gives the others that are doubted their time anew, and nothing else', (t) => {
  const policy = new LossPolicy(100);
  policy.fileReturned(2_500);
  t.is(policy.ends({ since: 1_000, doubted: true }), 4_500);
  t.is(policy.ends({ since: 1_000, doubted: false }), 1_100);
  t.is(policy.ends({ since: 2_600, doubted: true }), 4_600);
});
