// The columns of HAProxy's `show stat` that become metrics: counters, which only go up, and gauges.
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

/** Index of a column's number in a series. */
export function positionOf(column: Column): number {
  return allColumns.indexOf(column);
}
