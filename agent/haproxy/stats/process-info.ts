// What `show info` says of a worker, as far as it becomes metrics. Pure.

import { HeadgateError } from '../../base/errors.ts';

/** What only goes up; a worker's totals are kept as those of series are. */
export const infoCounters = ['CumConns', 'CumReq', 'TotalBytesOut', 'DroppedLogs'] as const;

export interface ProcessInfo {
  /** Pid and time of start: no two workers have the same. */
  readonly id: string;
  readonly pid: number;
  readonly version: string;
  readonly stopping: boolean;
  /** Seconds since the Unix epoch. */
  readonly startTime: number;
  /** In the order of `infoCounters`. */
  readonly counters: readonly number[];
  /** NaN where this HAProxy does not tell. */
  readonly gauge: (name: string) => number;
}

/** Errors: RUNTIME_REPLY. */
export function readProcessInfo(text: string): ProcessInfo {
  const fields = new Map(
    text.split('\n').map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const gauge = (name: string): number => Number.parseInt(fields.get(name) ?? '', 10);
  const [pid, startTime] = [gauge('Pid'), gauge('Start_time_sec')];
  if (!(pid > 0)) throw new HeadgateError('RUNTIME_REPLY', "Cannot read HAProxy's info: no pid");
  return {
    id: `${pid} ${startTime}`,
    pid,
    version: fields.get('Version') ?? '',
    stopping: fields.get('Stopping') !== '0',
    startTime,
    counters: infoCounters.map((name) => gauge(name) || 0),
    gauge,
  };
}
