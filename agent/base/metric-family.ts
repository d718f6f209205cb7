// The form in which the parts of the agent hand over their metrics. It is made for many samples: the labels of a sample are
// rendered once, and its numbers are read when the metrics are rendered. Pure.

export interface MetricFamily {
  /** Ends in `_total` for a counter. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary' | 'unknown';
  readonly help: string;
  readonly parts: readonly MetricPart[];
  /** The values of a stored family change: each scrape reads them again. */
  readonly isLive?: boolean;
}

/** The samples of a family that differ only in their row. */
export interface MetricPart {
  /** The suffix of the name: `_bucket`, `_sum`. */
  readonly suffix?: string;
  /** Labels in addition to the row's: `code="2xx"`, escaped; '' for none. */
  readonly labels: string;
  readonly rows: readonly MetricRow[];
  /** NaN: the row has no such sample. */
  readonly value: (row: unknown) => number;
}

export interface MetricRow {
  /** `a="b",c="d"`, escaped; '' for none. */
  readonly labels: string;
}

/** The most detailed metrics of traffic: those of listeners, of pools too, or of members too. */
export type MetricsDetail = 'listener' | 'pool' | 'member';

/** A family with one sample for each row. */
export function familyOf<R extends MetricRow>(
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  rows: readonly R[],
  value: (row: R) => number,
): MetricFamily {
  return { name, type, help, parts: [{ labels: '', rows, value: value as (row: unknown) => number }] };
}
