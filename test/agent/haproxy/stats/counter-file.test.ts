import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { readCounts, writeCounts } from '../../../../agent/haproxy/stats/counter-file.ts';
import { infoCounters } from '../../../../agent/haproxy/stats/process-info.ts';
import { newCounts } from '../../../../agent/haproxy/stats/series.ts';

const process = infoCounters.map(() => 0);

function counted(): number[] {
  const counts = newCounts();
  counts[positionOf('stot')] = 16;
  return counts;
}

test('A series that has counted nothing takes no line of the file', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'counters');
  const series = [
    ['a:b:tcp:80:v4,idle', { totals: newCounts(), readings: new Map([['1', newCounts()]]) }],
    ['a:b:tcp:80:v4,used', { totals: counted(), readings: new Map() }],
  ] as const;
  await writeCounts(path, { isClean: true, process, series, workers: new Map([['1', process]]) });
  t.is((await readFile(path, 'utf8')).trimEnd().split('\n').length, 2, 'The head, and the one that was used');
  t.deepEqual([...((await readCounts(path))?.series.keys() ?? [])], ['a:b:tcp:80:v4,used']);
});

test('What a worker has counted in a second backend is kept, although there are no totals of it', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'counters');
  const key = 'a:b:tcp:80:v4:all-down,BACKEND';
  await writeCounts(path, {
    isClean: true,
    process,
    series: [
      [key, { totals: [], readings: new Map([['1', counted()]]) }],
      ['a:c:tcp:80:v4:all-down,BACKEND', { totals: [], readings: new Map() }],
    ],
    workers: new Map([['1', process]]),
  });
  const { series } = (await readCounts(path)) ?? {};
  t.deepEqual([...(series?.keys() ?? [])], [key]);
  t.deepEqual([...(series?.get(key)?.readings ?? [])], [['1', counted()]]);
});
