import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { allColumns, counterCount, positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { readCounts, writeCounts } from '../../../../agent/haproxy/stats/counter-file.ts';
import { infoCounters } from '../../../../agent/haproxy/stats/process-info.ts';

function valuesWith(column: 'stot' | 'weight'): number[] {
  return allColumns.map((_, at) => (at === positionOf(column) ? 16 : 0));
}

test('What has a weight but has counted nothing takes no line of the file', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'counters');
  const series = new Map([
    ['a:b:tcp:80:v4,idle', valuesWith('weight')],
    ['a:b:tcp:80:v4,used', valuesWith('stot')],
  ]);
  await writeCounts(path, {
    isClean: true,
    process: infoCounters.map(() => 0),
    series,
    workers: new Map(),
  });
  t.is((await readFile(path, 'utf8')).trimEnd().split('\n').length, 2, 'The head, and the one that was used');
  t.deepEqual([...((await readCounts(path))?.series.keys() ?? [])], ['a:b:tcp:80:v4,used']);
});

test('What a worker has counted in a second backend is kept, although there are no totals of it', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'counters');
  const key = 'a:b:tcp:80:v4:all-down,BACKEND';
  const reading = valuesWith('stot').slice(0, counterCount);
  const process = infoCounters.map(() => 0);
  await writeCounts(path, {
    isClean: true,
    process,
    series: [
      [key, []],
      ['a:c:tcp:80:v4:all-down,BACKEND', []],
    ],
    workers: new Map([['1', { process, series: new Map([[key, reading]]) }]]),
  });
  const counts = await readCounts(path);
  t.deepEqual([...(counts?.workers.get('1')?.series ?? [])], [[key, reading]]);
});
