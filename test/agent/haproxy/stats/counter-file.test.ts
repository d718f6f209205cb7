import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { infoCounters, positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { readCounts, writeCounts } from '../../../../agent/haproxy/stats/counter-file.ts';
import { newCounts } from '../../../../agent/haproxy/stats/series.ts';

const process = infoCounters.map(() => 0);

function counted(): number[] {
  const counts = newCounts();
  counts[positionOf('stot')] = 16;
  return counts;
}

test('writeCounts() writes no line for a series that has counted nothing', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'counters');
  const totals = new Map([
    ['a:b:tcp:80:v4,idle', newCounts()],
    ['a:b:tcp:80:v4,used', counted()],
  ]);
  const workers = new Map([['1', { process, rows: new Map([['a:b:tcp:80:v4,idle', newCounts()]]) }]]);
  await writeCounts(path, { isClean: true, process, totals, workers });
  t.is((await readFile(path, 'utf8')).trimEnd().split('\n').length, 2, 'The head, and the used series');
  t.deepEqual([...((await readCounts(path))?.totals.keys() ?? [])], ['a:b:tcp:80:v4,used']);
});

test('writeCounts() writes the counts of a worker in a fallback backend, which has no totals', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'counters');
  const rows = new Map([
    ['a:b:tcp:80:v4:all-down,BACKEND', counted()],
    ['a:c:tcp:80:v4:all-down,BACKEND', newCounts()],
  ]);
  const workers = new Map([['1', { process, rows }]]);
  await writeCounts(path, { isClean: true, process, totals: new Map(), workers });
  const read = await readCounts(path);
  t.is(read?.totals.size, 0);
  t.deepEqual([...(read?.workers.get('1')?.rows ?? [])], [['a:b:tcp:80:v4:all-down,BACKEND', counted()]]);
});
