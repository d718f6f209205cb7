// The columns of HAProxy's `show stat` that become metrics: what only goes up, and what is as it is now.
// A series keeps its numbers in this order, the counters first.

export const counterColumns = [
  'stot',
  'bin',
  'bout',
  'ereq',
  'econ',
  'eresp',
  'wretr',
  'wredis',
  'chkfail',
  'chkdown',
  'downtime',
  'hrsp_1xx',
  'hrsp_2xx',
  'hrsp_3xx',
  'hrsp_4xx',
  'hrsp_5xx',
  'hrsp_other',
  'req_tot',
  'cli_abrt',
  'srv_abrt',
  'conn_tot',
  'dcon',
  'dses',
] as const;

const gaugeColumns = [
  'type',
  'scur',
  'slim',
  'qcur',
  'weight',
  'act',
  'check_duration',
  'qtime',
  'ctime',
  'rtime',
  'ttime',
] as const;

export type Column = (typeof counterColumns)[number] | (typeof gaugeColumns)[number];

export const allColumns: readonly Column[] = [...counterColumns, ...gaugeColumns];

export const counterCount = counterColumns.length;

/** The place behind the columns of all that a row says in words: status, mode, last check. */
export const WORDS = allColumns.length;

/** Where a column's number stands in a series. */
export function positionOf(column: Column): number {
  return allColumns.indexOf(column);
}

/** By a column's place, or `WORDS`: the number of the reading that last changed it; 0 where none did. */
export type Changes = number[];

export function newChanges(): Changes {
  return new Array<number>(WORDS + 1).fill(0);
}
