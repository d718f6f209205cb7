import test from 'ava';
import { Patience } from '../../../../agent/kubernetes/manifests/patience.ts';

test('What is missing is believed to be gone after the patience, and twenty times later where it is doubted', (t) => {
  const patience = new Patience(100);
  t.is(patience.ends({ since: 1_000, doubted: false }), 1_100);
  t.is(patience.ends({ since: 1_000, doubted: true }), 3_000);
});

test('A file that comes back gives the others that are doubted their time anew, and nothing else', (t) => {
  const patience = new Patience(100);
  patience.fileReturned(2_500);
  t.is(patience.ends({ since: 1_000, doubted: true }), 4_500);
  t.is(patience.ends({ since: 1_000, doubted: false }), 1_100);
  t.is(patience.ends({ since: 2_600, doubted: true }), 4_600);
});
