// The numbers of HAProxy that the agent reads: columns of `show stat`, counters first, and counters of `show info`.
// A series has its numbers in the order of the columns.

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
  'ssl_failed_handshake',
] as const;

/** Not of a HAProxy without TLS. */
export const optionalColumns: ReadonlySet<string> = new Set(['ssl_failed_handshake']);

const gaugeColumns = [
  'scur',
  'rate',
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

/** The index of a column's number in a series. */
export function positionOf(column: Column): number {
  return allColumns.indexOf(column);
}

/** Counters of a worker's process. */
export const infoCounters = ['CumConns', 'CumReq', 'TotalBytesOut', 'DroppedLogs'] as const;
