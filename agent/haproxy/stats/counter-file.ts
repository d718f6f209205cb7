// The totals on disk, so that an agent that starts goes on where the one before it ended. One line of JSON says which
// workers had been read, each further line is a series, or what belongs to it in a second backend, that has counted
// anything. What cannot be read counts as nothing: then counters begin anew, which Prometheus takes for a restart.

import { readFile } from 'node:fs/promises';
import { BESIDE_TRAFFIC, Slice } from '../../base/slice.ts';
import { boolean, listOf, number, object, string, wholeNumber } from '../../base/validate.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { counterColumns } from './columns.ts';
import { infoCounters } from './process-info.ts';
import { newReading, type Reading, type WorkerReadings } from './totals.ts';

export interface WorkerCounts {
  readonly process: Reading;
  readonly series: WorkerReadings;
}

export interface Counts {
  /** Nothing has been shown to anyone since it was written. */
  readonly isClean: boolean;
  readonly process: number[];
  /** By key. */
  readonly series: ReadonlyMap<string, number[]>;
  /** By id. */
  readonly workers: ReadonlyMap<string, WorkerCounts>;
}

const count = number().refine((value, refuse) => {
  if (value < 0) refuse([], 'is not a count');
});
/** The same to be written: series one by one, each as it is by then. */
export interface WrittenCounts extends Omit<Counts, 'series'> {
  readonly series: Iterable<readonly [key: string, totals: readonly number[]]>;
}

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

/** Series between two looks at the clock. */
const FEW = 32;

/** Errors: FILE_WRITE. */
export async function writeCounts(path: string, counts: WrittenCounts): Promise<void> {
  const { isClean, process, series, workers } = counts;
  const all = [...workers];
  const first = {
    version: 1,
    isClean,
    columns: counterColumns,
    info: infoCounters,
    process,
    workers: all.map(([id, own]) => ({ id, process: own.process })),
  };
  const slice = new Slice(BESIDE_TRAFFIC);
  const chunks = [`${JSON.stringify(first)}\n`];
  let at = 0;
  for (const [key, totals] of series) {
    if (at++ % FEW === 0 && slice.isOver) await slice.pause();
    const readings = all.map(([, own]) => own.series.get(key) ?? []);
    if (!hasCounted(totals) && !readings.some(hasCounted)) continue;
    chunks.push(`${JSON.stringify([key, totals.slice(0, counterColumns.length), readings])}\n`);
  }
  await writeAtomically(path, chunks);
}

/** What is as it is now, a weight or a limit, stands behind the counters and does not count. */
function hasCounted(totals: readonly number[]): boolean {
  for (let at = 0; at < counterColumns.length; at++) if ((totals[at] as number) > 0) return true;
  return false;
}

/** undefined where there is none that can be read. */
export async function readCounts(path: string): Promise<Counts | undefined> {
  try {
    const [first = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
    const { isClean, columns, info, process, workers } = head.parse(JSON.parse(first));
    const inOrder = (
      names: readonly string[],
      from: readonly string[],
      values: readonly number[],
    ): number[] => names.map((name) => values[from.indexOf(name)] ?? 0);
    const series = new Map<string, number[]>();
    const byWorker = workers.map((each) => ({
      id: each.id,
      process: inOrder(infoCounters, info, each.process),
      series: new Map<string, Reading>(),
    }));
    const slice = new Slice();
    for (const row of rest) {
      if (row === '') continue;
      const { key, totals, readings } = lineOf(JSON.parse(row));
      series.set(key, inOrder(counterColumns, columns, totals));
      for (const [at, own] of byWorker.entries()) {
        const reading = readings[at] ?? [];
        own.series.set(key, reading.length === 0 ? newReading() : inOrder(counterColumns, columns, reading));
      }
      if (slice.isOver) await slice.breathe();
    }
    return {
      isClean,
      process: inOrder(infoCounters, info, process),
      series,
      workers: new Map(byWorker.map(({ id, ...own }) => [id, own])),
    };
  } catch {
    return undefined;
  }
}

/** Key, totals, and what each worker had counted. */
function lineOf(json: unknown) {
  const [key, totals, readings] = Array.isArray(json) ? json : [];
  return line.parse({ key, totals, readings });
}
