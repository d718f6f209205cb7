import test from 'ava';
import type { RunningServer } from '../../../../agent/haproxy/running.ts';
import { clientsInWords, serversInWords } from '../../../../agent/haproxy/worker/audit.ts';

const ready: RunningServer = { id: 1, weight: 16, check: 'none', state: 'ready' };

test('serversInWords() names each server that differs, and the difference', (t) => {
  const words = (is: RunningServer | undefined, was: RunningServer | undefined) =>
    serversInWords(new Map(is && [['a:1', is]]), new Map(was && [['a:1', was]]));
  t.is(words(ready, ready), '');
  t.is(words({ ...ready, state: 'maint' }, ready), 'server a:1 has state maint, not ready');
  t.is(words({ ...ready, weight: 1 }, ready), 'server a:1 has weight 1, not 16');
  t.is(words({ ...ready, isMoved: true }, ready), 'server a:1 has another address');
  t.is(words(undefined, ready), 'server a:1 is missing');
  t.is(words(ready, undefined), 'server a:1 was added by another process');
});

test('serversInWords() and clientsInWords() name three of many differences', (t) => {
  const cidrs = new Set(['10.0.0.0/8', '11.0.0.0/8', '12.0.0.0/8', '13.0.0.0/8', '14.0.0.0/8']);
  t.is(
    clientsInWords([{ id: 1, cidrs: new Set(['10.0.0.0/8']) }], [{ id: 1, cidrs }]),
    '11.0.0.0/8 is not allowed, 12.0.0.0/8 is not allowed, 13.0.0.0/8 is not allowed, 1 more',
  );
});
