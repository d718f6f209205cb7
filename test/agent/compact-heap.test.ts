import test from 'ava';
import { HeapCompaction } from '../../agent/compact-heap.ts';

test('HeapCompaction.once() compacts the whole heap the first time only, and does without where Node offers no way', (t) => {
  const before = globalThis.gc;
  t.teardown(() => {
    globalThis.gc = before;
  });
  const asked: unknown[] = [];
  globalThis.gc = (async (options: unknown) => void asked.push(options)) as unknown as NodeJS.GCFunction;
  const compaction = new HeapCompaction();
  compaction.once();
  compaction.once();
  t.deepEqual(asked, [{ type: 'major', execution: 'sync', flavor: 'last-resort' }]);
  globalThis.gc = undefined;
  t.notThrows(() => new HeapCompaction().once());
});
