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
  test(`nearest() suggests ${meant ?? 'nothing'} for "${word.slice(0, 20)}"`, (t) => {
    t.is(nearest(word, known), meant);
  });

test('nearest() suggests the nearest of several near words', (t) => {
  t.is(nearest('timeouts', ['timestamp', 'timeout']), 'timeout');
  t.is(nearest('a', []), undefined);
});
