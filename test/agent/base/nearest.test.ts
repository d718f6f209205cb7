import test from 'ava';
import { nearest } from '../../../agent/base/nearest.ts';

const known = ['zone', 'maxOldWorkers', 'priority', 'drainTimeout', 'listen'];

for (const [word, meant] of [
  ['zones', 'zone'],
  ['ZONE', 'zone'],
  ['old-workers', 'maxOldWorkers'],
  ['pirority', 'priority'],
  ['drain_timeout', 'drainTimeout'],
  ['foo', undefined],
  ['zoo', undefined],
  ['z', undefined],
  ['', undefined],
  ['drainSomethingElse', undefined],
  [`listen${'n'.repeat(100)}`, undefined],
] as const)
  test(`nearest() takes "${word.slice(0, 20)}" for ${meant ?? 'nothing that is known'}`, (t) => {
    t.is(nearest(word, known), meant);
  });

test('nearest() gives the nearest of several that are near', (t) => {
  t.is(nearest('timeouts', ['timestamp', 'timeout']), 'timeout');
  t.is(nearest('a', []), undefined);
});
