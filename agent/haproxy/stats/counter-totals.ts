// Everything that HAProxy has counted, by series, over all of its workers. Takes in one reading of one worker after
// the other; does not know where they come from.

import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { fallbackBackend, listenerOfBackend } from '../../model/names.ts';
import { allColumns, counterCount, positionOf, WORDS } from './columns.ts';
import type { Counts, WorkerCounts, WrittenCounts } from './counter-file.ts';
import { infoCounters, type ProcessInfo } from './process-info.ts';
import {
  isOf,
  listenerLabels,
  memberLabels,
  Names,
  newOrigin,
  newSeries,
  type Origin,
  type Series,
} from './series.ts';
import { type Block, SeriesBlocks } from './series-blocks.ts';
import { countedColumns } from './socket-rows.ts';
import type { StatRow } from './stat-rows.ts';
import { addCounted, firstReading, newReading, type Reading } from './totals.ts';

export class Ledger {
  readonly #series = new Map<string, Series>();
  /** By the listener's name. */
  readonly #origins = new Map<string, Origin>();
  readonly #blocks: Readonly<Record<Series['kind'], SeriesBlocks>> = {
    listener: new SeriesBlocks(),
    pool: new SeriesBlocks(),
    member: new SeriesBlocks(),
  };
  readonly #workers = new Map<string, WorkerCounts>();
  readonly #process = infoCounters.map(() => 0);
  /** Totals of an agent before this one, of series that have not been seen since. */
  #inherited: ReadonlyMap<string, number[]> = new Map();
  #legacy: Counts | undefined;
  #number = 0;
  readonly #now: () => number;
  /** When the last reading of the worker that takes connections was over that had what has changed of pools and members. */
  #readAt = Number.NEGATIVE_INFINITY;
  #age = 0;

  /** `now()`: seconds, from any moment on. */
  constructor(now: () => number = () => performance.now() / 1_000) {
    this.#now = now;
  }

  /** What an agent before this one had counted; taken over with the first reading, if it can be continued. */
  inherit(counts: Counts | undefined): void {
    this.#legacy = counts;
  }

  /** Totals of the process, in the order of `infoCounters`. */
  get process(): readonly number[] {
    return this.#process;
  }

  /** For how many seconds pools and members have been as they were read before, 0 where the last reading had them. */
  get age(): number {
    return this.#age;
  }

  /** The series that the last whole reading of a worker that takes connections had. */
  blocks(kind: Series['kind']): readonly Block[] {
    return this.#blocks[kind].all;
  }

  /**
   * One reading of the worker that takes connections. `onTaken` is told of each listener and pool whether it differs from
   * the reading before. `listener()` is what the model has of one. `end()` is called only where it was read to its end,
   * with the listeners that it left out, or whose pools or members it did: because they are as they were, or because
   * they are put off.
   */
  current(
    info: ProcessInfo,
    loadBalancers: ReadonlyMap<string, LoadBalancer>,
    onTaken: (series: Series, differs: boolean) => void = () => undefined,
  ): {
    row(row: StatRow): void;
    /** In place of the row of a listener: what its sockets have counted, in the order of `countedColumns`. */
    counted(listener: string, counts: readonly number[]): void;
    listener(name: string): Listener | undefined;
    end(left?: { readonly unread: ReadonlySet<string>; readonly isPutOff: boolean }): void;
  } {
    this.#takeOver(info);
    const worker = this.#workerOf(info);
    const names = new Names(loadBalancers);
    const number = ++this.#number;
    const passed = this.#now() - this.#readAt;
    let name = '';
    let origin: Origin | undefined;
    let listener: Listener | undefined;
    return {
      row: (row) => {
        if (row.comma !== name.length || !row.key.startsWith(name)) {
          name = row.key.slice(0, row.comma);
          origin = this.#originOf(name);
          listener = origin && names.listener(origin);
        }
        const kind = KINDS[row.values[TYPE] as number];
        if (kind === undefined || origin === undefined) {
          this.#addSpare(worker, row, number);
          return;
        }
        let series = this.#series.get(row.key);
        if (series === undefined) {
          series = newSeries(kind, origin);
          this.#inherited.get(row.key)?.forEach((total, at) => {
            (series as Series).values[at] = total;
          });
          this.#series.set(row.key, series);
          this.#blocks[kind].add(series);
        }
        if (series.labels === '' || series.source !== listener) {
          const server = row.key.slice(row.comma + 1);
          series.source = listener;
          series.labels =
            kind === 'member'
              ? memberLabels(name, server, names.member(listener, server))
              : listenerLabels(name);
          this.#blocks[kind].relabel(series);
        }
        series.origin = origin;
        series.seen = number;
        const differs = take(worker, row, series, number, passed);
        if (kind !== 'member') onTaken(series, differs);
      },
      counted: (of, counts) => {
        const series = this.#series.get(`${of},FRONTEND`);
        if (series !== undefined) take(worker, rowFrom(series, counts), series, number, passed);
      },
      listener: (of) => {
        const itsOrigin = this.#originOf(of);
        return itsOrigin && names.listener(itsOrigin);
      },
      end: ({ unread, isPutOff } = { unread: new Set(), isPutOff: false }) => {
        this.#inherited = new Map();
        const now = this.#now();
        if (!isPutOff) this.#readAt = now;
        this.#age = now - this.#readAt;
        for (const name of unread) {
          const left = this.#origins.get(name);
          if (left !== undefined) left.unread = number;
        }
        for (const blocks of Object.values(this.#blocks)) blocks.settle(number);
        // A Map's own loop makes no list for each of its entries, of which there may be tens of thousands.
        this.#series.forEach((series, key) => {
          if (!isOf(number, series)) this.#drop(key, series);
        });
      },
    };
  }

  /** undefined for what is not ours. */
  #originOf(name: string): Origin | undefined {
    let origin = this.#origins.get(name);
    if (origin === undefined && OURS.test(name)) {
      origin = newOrigin(name);
      this.#origins.set(name, origin);
    }
    return origin;
  }

  #drop(key: string, { kind, listener }: Series): void {
    this.#series.delete(key);
    if (kind === 'listener') this.#origins.delete(listener);
    for (const { series } of this.#workers.values()) {
      series.delete(key);
      series.delete(spareKeyOf(key));
    }
  }

  /**
   * One reading of a worker that is on its way out: it only counts, for those that are still there. It checks nobody any
   * more, so that whoever was down when it was replaced is so for ever there.
   */
  old(info: ProcessInfo): (row: StatRow) => void {
    const worker = this.#workerOf(info);
    return (row) => {
      const series = this.#series.get(row.key) ?? this.#ownerOf(row);
      row.values[DOWNS] = Number.NaN;
      row.values[DOWNTIME] = Number.NaN;
      // After the reading before, and so in the next one.
      if (series !== undefined) count(worker, row, series, this.#number + 1);
    };
  }

  /**
   * What went to a member while checks found all of them down counts as the member's own. A listener stands before its
   * second backend; where it is not there yet, the next reading has what this one leaves out.
   */
  #addSpare(worker: WorkerCounts, row: StatRow, number: number): void {
    const series = this.#ownerOf(row);
    if (series?.seen !== number) return;
    count(worker, row, series, number);
    for (const at of NOW) {
      const more = row.values[at] as number;
      if (more === 0) continue;
      (series.values[at] as number) += more;
      series.changes[at] = number;
    }
  }

  #ownerOf({ key, comma }: StatRow): Series | undefined {
    const backend = key.slice(0, comma);
    const owner = listenerOfBackend(backend);
    return owner === backend ? undefined : this.#series.get(`${owner}${key.slice(comma)}`);
  }

  /** All workers but these are gone, or will not be read again. */
  keepWorkers(pids: ReadonlySet<number>): void {
    for (const id of this.#workers.keys()) if (!pids.has(Number.parseInt(id, 10))) this.#workers.delete(id);
  }

  counts(isClean: boolean): WrittenCounts {
    return { isClean, process: this.#process, series: this.#totals(), workers: this.#workers };
  }

  /** Of a second backend there are no totals, but readings that the next agent has to know. */
  *#totals(): Generator<readonly [key: string, totals: readonly number[]], void, void> {
    for (const [key, { kind, values }] of this.#series) {
      yield [key, values];
      if (kind !== 'listener') yield [spareKeyOf(key), []];
    }
  }

  /**
   * Goes on from the counts of an agent before this one where the worker is one that they know, or where nothing
   * has been shown since. Otherwise they may be less than what somebody has seen, and all begins at 0.
   */
  #takeOver({ id }: ProcessInfo): void {
    const counts = this.#legacy;
    this.#legacy = undefined;
    if (counts === undefined || !(counts.isClean || counts.workers.has(id))) return;
    this.#inherited = counts.series;
    for (const [at, total] of counts.process.entries()) this.#process[at] = total;
    for (const [worker, own] of counts.workers) this.#workers.set(worker, own);
  }

  #workerOf({ id, counters }: ProcessInfo): WorkerCounts {
    let worker = this.#workers.get(id);
    if (worker === undefined) {
      worker = { process: infoCounters.map(() => 0), series: new Map() };
      this.#workers.set(id, worker);
    }
    addCounted(this.#process, worker.process, counters);
    return worker;
  }
}

function spareKeyOf(key: string): string {
  const comma = key.indexOf(',');
  return `${fallbackBackend(key.slice(0, comma))}${key.slice(comma)}`;
}

/** What is open or waits now. */
const NOW = [positionOf('scur'), positionOf('qcur')];
const COUNTED = countedColumns.map(positionOf);
const [TYPE, DOWNS, DOWNTIME] = [positionOf('type'), positionOf('chkdown'), positionOf('downtime')];
const KINDS: readonly (Series['kind'] | undefined)[] = ['listener', 'pool', 'member'];
/** Of a frontend or backend of ours: HAProxy's own (peers, tables, what others have added) have other names. */
export const OURS = /^[^:,]+:[^:,]+:[a-z]+:\d+:v[46]$/;

/**
 * Takes a row of this reading into its series. True where that has changed anything. `passed`: seconds since the reading
 * before.
 */
function take(worker: WorkerCounts, row: StatRow, series: Series, reading: number, passed: number): boolean {
  const isHttp = row.mode === 'http';
  const { values, changes } = series;
  const wasDown = series.status.startsWith('DOWN');
  let differs =
    series.status !== row.status || series.checkStatus !== row.checkStatus || series.isHttp !== isHttp;
  if (differs) changes[WORDS] = reading;
  series.isHttp = isHttp;
  series.hasCheck = row.status !== 'no check' && row.checkStatus !== '';
  series.status = row.status;
  series.checkStatus = row.checkStatus;
  for (let at = counterCount; at < allColumns.length; at++) {
    const value = row.values[at] as number;
    if (Object.is(values[at], value)) continue;
    values[at] = value;
    changes[at] = reading;
    differs = true;
  }
  // Of the worker that takes connections it is at hand: with many members to look for it by its key costs as much as to
  // take in the row.
  if (series.countedBy !== worker) {
    if (series.countedBy !== undefined && !worker.series.has(row.key))
      worker.series.set(row.key, firstReading(row.values, wasDown, passed));
    series.countedBy = worker;
    series.counted = readingOf(worker, row.key);
  }
  return addCounted(values, series.counted, row.values, changes, reading) || differs;
}

/**
 * The row of a listener as its sockets have it: what they do not tell is as it was. They count after it, so that what
 * they have less than it had is no beginning anew.
 */
function rowFrom(
  { listener, values, counted, status, checkStatus, isHttp }: Series,
  counts: readonly number[],
): StatRow {
  const row = allColumns.map((_, at) => (at < counterCount ? Number.NaN : (values[at] as number)));
  for (const [place, at] of COUNTED.entries()) {
    const value = counts[place] as number;
    if (at >= counterCount || value >= (counted[at] as number)) row[at] = value;
  }
  const mode = isHttp ? 'http' : 'tcp';
  return { key: `${listener},FRONTEND`, comma: listener.length, values: row, status, checkStatus, mode };
}

function count(worker: WorkerCounts, row: StatRow, { values, changes }: Series, reading: number): void {
  addCounted(values, readingOf(worker, row.key), row.values, changes, reading);
}

function readingOf({ series }: WorkerCounts, key: string): Reading {
  let last = series.get(key);
  if (last === undefined) {
    last = newReading();
    series.set(key, last);
  }
  return last;
}
