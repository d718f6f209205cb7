// What is known of one frontend, backend or server for its metrics. The numbers change in place with each round.
// A counter is the sum over all workers: each counts from 0, and what it counted since it was last read is added. So
// neither a new worker nor one that has ended changes a total.

import type { Listener } from '../../model/load-balancer.ts';
import { allColumns, counterCount, positionOf } from './columns.ts';
import type { StatRow } from './stat-rows.ts';

export type SeriesKind = 'listener' | 'pool' | 'member';

export interface Series {
  /** `backend,server`, as HAProxy has it. */
  readonly key: string;
  readonly kind: SeriesKind;
  /** `namespace="default",service="web",...`, escaped. */
  labels: string;
  /** What the labels were made from. */
  source: Listener | undefined;
  /** In the order of the columns: totals over all workers, then gauges. */
  readonly values: number[];
  isHttp: boolean;
  hasCheck: boolean;
  status: string;
  checkStatus: string;
  /** Number of the last round that had it. */
  round: number;
  /** When the active worker was last read, in milliseconds; NaN until then. */
  readAt: number;
  readings: readonly Reading[];
}

/** What one worker had counted when it was last read, in the listener's own backend or in its fallback backend. */
export interface Reading {
  readonly workerId: string;
  readonly isFallback: boolean;
  readonly counts: number[];
}

export function newSeries(key: string, kind: SeriesKind): Series {
  return {
    key,
    kind,
    labels: '',
    source: undefined,
    values: allColumns.map((_, at) => (at < counterCount ? 0 : Number.NaN)),
    isHttp: false,
    hasCheck: false,
    status: '',
    checkStatus: '',
    round: 0,
    readAt: Number.NaN,
    readings: [],
  };
}

const [DOWNS, DOWNTIME] = [positionOf('chkdown'), positionOf('downtime')];
/** What the fallback backend has besides the listener's own. */
const ADDED_GAUGES = [positionOf('scur'), positionOf('qcur')];

/** Takes in a row of the active worker. `now`: milliseconds. */
export function takeRow(series: Series, row: StatRow, workerId: string, now: number): void {
  const { values } = series;
  if (!Number.isNaN(series.readAt) && readingOf(series, workerId, false) === undefined) {
    const counts = handedOn(row, series.status.startsWith('DOWN'), (now - series.readAt) / 1_000);
    series.readings = [...series.readings, { workerId, isFallback: false, counts }];
  }
  count(series, row, workerId);
  for (let at = counterCount; at < values.length; at++) values[at] = row.values[at] as number;
  series.isHttp = row.mode === 'http';
  series.hasCheck = row.status !== 'no check' && row.checkStatus !== '';
  series.status = row.status;
  series.checkStatus = row.checkStatus;
  series.readAt = now;
}

/** Adds a row of the fallback backend of the active worker, after that of the listener's own backend. */
export function addFallbackRow(series: Series, row: StatRow, workerId: string): void {
  count(series, row, workerId, true);
  for (const at of ADDED_GAUGES) (series.values[at] as number) += row.values[at] as number;
}

/**
 * Adds a row of a worker that was replaced. It runs no checks any more, so a server that was down then stays down there
 * forever: its downs and its downtime do not count.
 */
export function addOldRow(series: Series, row: StatRow, workerId: string, isFallback: boolean): void {
  row.values[DOWNS] = Number.NaN;
  row.values[DOWNTIME] = Number.NaN;
  count(series, row, workerId, isFallback);
}

export function newCounts(): number[] {
  return new Array<number>(counterCount).fill(0);
}

/** Adds to the totals what the worker has counted since it was last read. */
function count(series: Series, row: StatRow, workerId: string, isFallback = false): void {
  let reading = readingOf(series, workerId, isFallback);
  if (reading === undefined) {
    reading = { workerId, isFallback, counts: newCounts() };
    series.readings = [...series.readings, reading];
  }
  const { counts } = reading;
  for (let at = 0; at < counterCount; at++) {
    const value = row.values[at] as number;
    const before = counts[at] as number;
    // A column that the row does not have is NaN, which is neither greater nor less. A server that was deleted and
    // added again has less: it counts from 0.
    if (value > before) (series.values[at] as number) += value - before;
    else if (value < before) (series.values[at] as number) += value;
    else continue;
    counts[at] = value;
  }
}

function readingOf({ readings }: Series, workerId: string, isFallback: boolean): Reading | undefined {
  for (const reading of readings)
    if (reading.workerId === workerId && reading.isFallback === isFallback) return reading;
  return undefined;
}

/**
 * What a new worker's first row has from the worker before it, which hands on which servers are down and since when: the
 * new one counts that as a down of its own, and as downtime from its beginning
 * (https://github.com/haproxy/haproxy/blob/v2.6.0/src/server_state.c). No server was down for longer than the seconds
 * that have passed since it was last read.
 */
function handedOn({ values }: StatRow, wasDown: boolean, passedSeconds: number): number[] {
  const counts = newCounts();
  if (wasDown) counts[DOWNS] = Math.min(1, values[DOWNS] || 0);
  counts[DOWNTIME] = Math.max(0, Math.round((values[DOWNTIME] || 0) - passedSeconds));
  return counts;
}
