import test from 'ava';
import { grown, type SoakUsage } from './soak-usage.ts';

const BEFORE: SoakUsage = { memory: 100, descriptors: 30, files: 40, processes: 7 };

test('grown() finds memory, descriptors, files and processes that are left over, each by name', (t) => {
  t.deepEqual(grown(BEFORE, BEFORE), []);
  t.deepEqual(grown(BEFORE, { memory: 300, descriptors: 50, files: 100, processes: 6 }), []);
  t.deepEqual(grown(BEFORE, { ...BEFORE, memory: 301 }), ['memory: 100 → 301, at most 300']);
  t.deepEqual(grown(BEFORE, { ...BEFORE, descriptors: 51 }), ['descriptors: 30 → 51, at most 50']);
  t.deepEqual(grown(BEFORE, { ...BEFORE, files: 101 }), ['files: 40 → 101, at most 100']);
  t.deepEqual(grown(BEFORE, { ...BEFORE, processes: 8 }), ['processes: 7 → 8, at most 7']);
});
