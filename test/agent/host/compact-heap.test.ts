import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { compactHeap } from '../../../agent/host/compact-heap.ts';

test('compactHeap() collects unreachable objects without a flag of Node', async (t) => {
  t.is(globalThis.gc, undefined);
  const unreachable = new WeakRef({});
  await nextTurn();
  compactHeap();
  t.is(unreachable.deref(), undefined);
});
