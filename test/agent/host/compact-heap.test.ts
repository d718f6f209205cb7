import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { HeapCompaction } from '../../../agent/host/compact-heap.ts';

test('HeapCompaction.once() compacts the whole heap, the first time only', (t) => {
  const asked: unknown[] = [];
  const collect = async (options: unknown) => void asked.push(options);
  const compaction = new HeapCompaction(() => collect as unknown as NodeJS.GCFunction);
  compaction.once();
  compaction.once();
  t.deepEqual(asked, [{ type: 'major', execution: 'sync', flavor: 'last-resort' }]);
});

test('After HeapCompaction.once() V8 may compact the heap once more, by itself, when there is little to do', (t) => {
  const flags: string[] = [];
  const collect = async () => undefined;
  const compaction = new HeapCompaction(
    () => collect as unknown as NodeJS.GCFunction,
    (flag) => void flags.push(flag),
  );
  compaction.once();
  t.deepEqual(
    flags.filter((flag) => flag.startsWith('--memory-reducer')),
    ['--memory-reducer-gc-count=1'],
  );
});

test('HeapCompaction.once() needs no flag of Node to collect what nobody has any more', async (t) => {
  t.is(globalThis.gc, undefined);
  const gone = new WeakRef({});
  await nextTurn();
  new HeapCompaction().once();
  t.is(gone.deref(), undefined);
});
