// Counters that never go back: each worker counts from 0, and what it has counted more since it was last read is added
// to the series' totals. So neither a new worker nor one that is gone changes a total.

import { type Changes, counterCount, positionOf } from './columns.ts';

/** What one worker had counted of one series when it was last read. */
export type Reading = number[];

/** By the series' key. */
export type WorkerReadings = Map<string, Reading>;

/**
 * Adds what `now` has more than `last` to `totals` and makes `last` the same as `now`. What has less than before has
 * begun anew, as a server does that was deleted and added again. What differs is marked with the number of the reading.
 * True where anything does.
 */
export function addCounted(
  totals: number[],
  last: Reading,
  now: readonly number[],
  changes: Changes = [],
  reading = 0,
): boolean {
  let differs = false;
  for (let at = 0; at < last.length; at++) {
    const value = now[at] as number;
    const before = last[at] as number;
    // NaN, which a row has where the column is none of its own, is never equal, greater or less.
    if (value > before) totals[at] = (totals[at] as number) + value - before;
    else if (value < before) totals[at] = (totals[at] as number) + value;
    else continue;
    last[at] = value;
    changes[at] = reading;
    differs = true;
  }
  return differs;
}

export function newReading(): Reading {
  return new Array<number>(counterCount).fill(0);
}

const [DOWNS, DOWNTIME] = [positionOf('chkdown'), positionOf('downtime')];

/**
 * What of a new worker's first row has been counted of the worker before it: that hands on who is down, and since when,
 * and the new one counts that as a down of its own, and as downtime from the beginning (srv_state_srv_update()). Nobody
 * has been down for longer than has passed since, in seconds.
 */
export function firstReading(row: readonly number[], wasDown: boolean, passed: number): Reading {
  const reading = newReading();
  if (wasDown) reading[DOWNS] = Math.min(1, row[DOWNS] || 0);
  reading[DOWNTIME] = Math.max(0, Math.round((row[DOWNTIME] || 0) - passed));
  return reading;
}
