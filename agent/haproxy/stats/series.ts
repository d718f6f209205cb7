// The state of one frontend, backend, server, route or check for its metrics; the same object has new numbers after each round. A
// counter is the total over all workers: each worker counts from 0, and what it has counted since it was last read is added.

import type { Listener } from '../../model/load-balancer.ts';
import { fallbackBackend } from '../../model/names.ts';
import { allColumns, counterCount, positionOf } from './columns.ts';
import type { StatRow } from './stat-rows.ts';

/** `listenerCheck`, `routeCheck`: what one check of a listener or route has refused. */
export type SeriesKind = 'listener' | 'pool' | 'member' | 'route' | 'listenerCheck' | 'routeCheck';

export interface Series {
  readonly kind: SeriesKind;
  /** `namespace="default",service="web",...`, escaped. */
  labels: string;
  /** The labels were made from this value of the listener. */
  source: Listener | undefined;
  /** In the order of the columns: totals over all workers, then gauges. */
  readonly values: number[];
  isHttp: boolean;
  /** False if HAProxy only checks the member: the kernel forwards to it. */
  isServed: boolean;
  hasCheck: boolean;
  status: string;
  checkStatus: string;
  /** The number of the last round that had it. */
  round: number;
  /** When the active worker was last read, in milliseconds; NaN until then. */
  readAt: number;
}

/** What a worker had counted when it was last read. */
export interface WorkerCounts {
  /** In the order of `infoCounters`. */
  readonly process: number[];
  /** By the row's key, also of fallback backends; in the order of `counterColumns`. */
  readonly rows: Map<string, number[]>;
}

/** `proxy,name`. */
export function keyOf(proxy: string, name: string): string {
  return `${proxy},${name}`;
}

/** The key of the same pool or member in its fallback backend. */
export function fallbackKeyOf(key: string): string {
  const comma = key.indexOf(',');
  return keyOf(fallbackBackend(key.slice(0, comma)), key.slice(comma + 1));
}

export function newSeries(kind: SeriesKind): Series {
  return {
    kind,
    labels: '',
    source: undefined,
    values: allColumns.map((_, at) => (at < counterCount ? 0 : Number.NaN)),
    isHttp: false,
    isServed: true,
    hasCheck: false,
    status: '',
    checkStatus: '',
    round: 0,
    readAt: Number.NaN,
  };
}

const [DOWNS, DOWNTIME] = [positionOf('chkdown'), positionOf('downtime')];
/** Gauges that are the sum over a listener's own backend, its fallback backend, and the replaced workers. */
const ADDED_GAUGES = [positionOf('scur'), positionOf('qcur')];

/** Adds a row of the active worker. `now`: milliseconds. */
export function addRow(series: Series, row: StatRow, worker: WorkerCounts, now: number): void {
  const key = keyOf(row.proxy, row.name);
  if (!Number.isNaN(series.readAt) && !worker.rows.has(key)) {
    const wasDown = series.status.startsWith('DOWN');
    worker.rows.set(key, countsOfPredecessor(row, wasDown, (now - series.readAt) / 1_000));
  }
  count(series, key, row.values, worker);
  for (let at = counterCount; at < series.values.length; at++) series.values[at] = row.values[at] as number;
  series.isHttp = row.mode === 'http';
  series.hasCheck = row.status !== 'no check' && row.checkStatus !== '';
  series.status = row.status;
  series.checkStatus = row.checkStatus;
  series.readAt = now;
}

/** Adds a row of the active worker's fallback backend, after the row of the listener's own backend. */
export function addFallbackRow(series: Series, row: StatRow, worker: WorkerCounts): void {
  count(series, keyOf(row.proxy, row.name), row.values, worker);
  addGauges(series, row);
}

/**
 * Adds a row of a replaced worker, after the row of the active one. It runs no checks, so a server that was down stays down
 * there: its downs and its downtime do not count.
 */
export function addOldRow(series: Series, row: StatRow, worker: WorkerCounts): void {
  const values = row.values.map((value, at) => (at === DOWNS || at === DOWNTIME ? Number.NaN : value));
  count(series, keyOf(row.proxy, row.name), values, worker);
  addGauges(series, row);
}

/** Notes a row that has no series: if one begins later, what the worker has counted until now does not count again. */
export function passOver({ proxy, name, values }: StatRow, worker: WorkerCounts): void {
  const counts = newCounts();
  for (let at = 0; at < counterCount; at++) counts[at] = values[at] || 0;
  worker.rows.set(keyOf(proxy, name), counts);
}

function addGauges({ values }: Series, row: StatRow): void {
  for (const at of ADDED_GAUGES) (values[at] as number) += row.values[at] || 0;
}

export function newCounts(): number[] {
  return new Array<number>(counterCount).fill(0);
}

/** Adds to the totals what the worker has counted since it was last read. */
function count(series: Series, key: string, values: readonly number[], worker: WorkerCounts): void {
  const counts = worker.rows.get(key) ?? newCounts();
  worker.rows.set(key, counts);
  for (let at = 0; at < counterCount; at++) {
    const value = values[at] as number;
    if (Number.isNaN(value)) continue;
    (series.values[at] as number) += increase(counts[at] as number, value);
    counts[at] = value;
  }
}

/** What a counter has counted since it was `before`. A counter that is less than before has started again from 0. */
export function increase(before: number, now: number): number {
  return now < before ? now : now - before;
}

/**
 * The part of a new worker's first row that it has from the previous worker. HAProxy hands over which servers are down
 * and since when, and the new worker counts this as a down of its own, and as downtime from its start
 * (https://github.com/haproxy/haproxy/blob/v2.6.0/src/server_state.c). Its own downtime is at most the time since the
 * series was last read.
 */
function countsOfPredecessor({ values }: StatRow, wasDown: boolean, passedSeconds: number): number[] {
  const counts = newCounts();
  if (wasDown) counts[DOWNS] = Math.min(1, values[DOWNS] || 0);
  counts[DOWNTIME] = Math.max(0, Math.round((values[DOWNTIME] || 0) - passedSeconds));
  return counts;
}
