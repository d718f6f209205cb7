// The totals on disk, so that the next agent continues them. The first line is JSON with the workers that were read;
// each further line has a key, its totals, and its counts in each of these workers. A file that cannot be read counts
// as missing: counters then begin at 0, which Prometheus treats as a restart.

import { readFile } from 'node:fs/promises';
import { Slice } from '../../base/slice.ts';
import { boolean, listOf, number, object, string, wholeNumber } from '../../base/validate.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { counterColumns, counterCount, infoCounters } from './columns.ts';
import type { WorkerCounts } from './series.ts';

export interface Counts {
  /** No totals were shown after it was written. */
  readonly isClean: boolean;
  /** In the order of `infoCounters`. */
  readonly process: readonly number[];
  /** By the worker's id. */
  readonly workers: ReadonlyMap<string, WorkerCounts>;
  /** By the series' key, in the order of `counterColumns`; further numbers are ignored. */
  readonly totals: ReadonlyMap<string, readonly number[]>;
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
const line = object({ key: string(), totals: numbers, counts: listOf(numbers) });

/** Errors: FILE_WRITE. */
export async function writeCounts(path: string, counts: Counts): Promise<void> {
  const { isClean, process, totals } = counts;
  const rows = Array.from(counts.workers.values(), (worker) => worker.rows);
  const workers = Array.from(counts.workers, ([id, worker]) => ({ id, process: worker.process }));
  const first = { version: 1, isClean, columns: counterColumns, info: infoCounters, process, workers };
  const chunks = [`${JSON.stringify(first)}\n`];
  const slice = new Slice();
  // A fallback backend has counts of workers, but no totals.
  for (const key of new Set([...totals.keys(), ...rows.flatMap((each) => [...each.keys()])])) {
    if (slice.isOver) await slice.breathe();
    const own = totals.get(key)?.slice(0, counterCount) ?? [];
    const counted = rows.map((each) => each.get(key) ?? []);
    if ([own, ...counted].some(hasCounted)) chunks.push(`${JSON.stringify([key, own, counted])}\n`);
  }
  await writeAtomically(path, chunks);
}

function hasCounted(counts: readonly number[]): boolean {
  return counts.some((value) => value > 0);
}

/** undefined for a file that is missing or cannot be read. */
export async function readCounts(path: string): Promise<Counts | undefined> {
  try {
    const [first = '', ...lines] = (await readFile(path, 'utf8')).split('\n');
    const { isClean, columns, info, process, workers } = head.parse(JSON.parse(first));
    const read = workers.map(
      ({ id, process: own }) =>
        [id, { process: inOrder(infoCounters, info, own), rows: new Map<string, number[]>() }] as const,
    );
    const totals = new Map<string, readonly number[]>();
    const slice = new Slice();
    for (const text of lines.filter(Boolean)) {
      const [key, own, counted] = JSON.parse(text);
      const parsed = line.parse({ key, totals: own, counts: counted });
      if (parsed.totals.length > 0) totals.set(key, inOrder(counterColumns, columns, parsed.totals));
      for (const [at, counts] of parsed.counts.entries())
        if (counts.length > 0) read[at]?.[1].rows.set(key, inOrder(counterColumns, columns, counts));
      if (slice.isOver) await slice.breathe();
    }
    return { isClean, process: inOrder(infoCounters, info, process), workers: new Map(read), totals };
  } catch {
    return undefined;
  }
}

/** The values of `names`, from a file that has them in the order of `from`; 0 for a name that the file lacks. */
function inOrder(names: readonly string[], from: readonly string[], values: readonly number[]): number[] {
  return names.map((name) => values[from.indexOf(name)] ?? 0);
}
