// The totals on disk, so that an agent that starts continues where the one before it ended. One line of JSON names the
// workers that had been read; each further line is a series, or its part in a fallback backend, that has counted
// anything. A file that cannot be read counts as none: counters then begin at 0, which Prometheus takes for a restart.

import { readFile } from 'node:fs/promises';
import { Slice } from '../../base/slice.ts';
import { boolean, listOf, number, object, string, wholeNumber } from '../../base/validate.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { counterColumns } from './columns.ts';
import { infoCounters } from './process-info.ts';

export interface CountedSeries {
  readonly totals: readonly number[];
  /** By the worker's id: what it had counted when it was last read. */
  readonly readings: ReadonlyMap<string, number[]>;
}

export interface Counts {
  /** Nothing was shown to anyone after it was written. */
  readonly isClean: boolean;
  readonly process: readonly number[];
  /** By id: what the worker's process had counted when it was last read. */
  readonly workers: ReadonlyMap<string, number[]>;
  /** By key. */
  readonly series: ReadonlyMap<string, CountedSeries>;
}

/** The same to be written: series one by one, each as it is by then. */
export interface WrittenCounts extends Omit<Counts, 'series'> {
  readonly series: Iterable<readonly [key: string, counted: CountedSeries]>;
}

const count = number().refine((value, refuse) => {
  if (value < 0) refuse([], 'is not a count');
});
const numbers = listOf(count);
const head = object({
  version: wholeNumber(1, 1),
  isClean: boolean(),
  columns: listOf(string()),
  info: listOf(string()),
  process: numbers,
  workers: listOf(object({ id: string(), process: numbers })),
});
const line = object({ key: string(), totals: numbers, readings: listOf(numbers) });

/** Errors: FILE_WRITE. */
export async function writeCounts(path: string, counts: WrittenCounts): Promise<void> {
  const { isClean, process } = counts;
  const workers = Array.from(counts.workers, ([id, own]) => ({ id, process: own }));
  const first = { version: 1, isClean, columns: counterColumns, info: infoCounters, process, workers };
  const chunks = [`${JSON.stringify(first)}\n`];
  const slice = new Slice();
  for (const [key, { totals, readings }] of counts.series) {
    if (slice.isOver) await slice.breathe();
    const counted = workers.map(({ id }) => readings.get(id) ?? []);
    if ([totals, ...counted].some(hasCounted)) chunks.push(`${JSON.stringify([key, totals, counted])}\n`);
  }
  await writeAtomically(path, chunks);
}

function hasCounted(counts: readonly number[]): boolean {
  return counts.some((value) => value > 0);
}

/** undefined for a file that is missing or cannot be read. */
export async function readCounts(path: string): Promise<Counts | undefined> {
  try {
    const [first = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
    const { isClean, columns, info, process, workers } = head.parse(JSON.parse(first));
    const series = new Map<string, CountedSeries>();
    const slice = new Slice();
    for (const row of rest) {
      if (row === '') continue;
      const { key, totals, readings } = lineOf(JSON.parse(row));
      const counted = workers.flatMap(({ id }, at) => {
        const counts = readings[at] ?? [];
        return counts.length === 0 ? [] : [[id, inOrder(counterColumns, columns, counts)] as const];
      });
      series.set(key, { totals: inOrder(counterColumns, columns, totals), readings: new Map(counted) });
      if (slice.isOver) await slice.breathe();
    }
    return {
      isClean,
      process: inOrder(infoCounters, info, process),
      workers: new Map(workers.map((each) => [each.id, inOrder(infoCounters, info, each.process)])),
      series,
    };
  } catch {
    return undefined;
  }
}

/** The values of `names`, as an agent has written them who had them in the order of `from`; 0 for one that it lacked. */
function inOrder(names: readonly string[], from: readonly string[], values: readonly number[]): number[] {
  return names.map((name) => values[from.indexOf(name)] ?? 0);
}

/** Key, totals, and what each worker had counted. */
function lineOf(json: unknown) {
  const [key, totals, readings] = Array.isArray(json) ? json : [];
  return line.parse({ key, totals, readings });
}
