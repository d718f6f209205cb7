// The form in which the parts of the agent give their metrics to those who write them out: made for many rows, whose
// labels are written once and whose numbers are only looked up. Values only.

export interface MetricFamily {
  /** Of a counter it ends in `_total`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary' | 'unknown';
  readonly help: string;
  readonly parts: readonly MetricPart[];
  /** The values change while the family is kept: they are looked up again for each scrape. */
  readonly isLive?: boolean;
}

/** Samples of a family that only differ in their row. */
export interface MetricPart {
  /** What the name goes on with: `_bucket`, `_sum`. */
  readonly suffix?: string;
  /** Besides the row's own: `code="2xx"`, escaped; '' for none. */
  readonly labels: string;
  readonly rows: readonly MetricRow[];
  /** NaN: the row has no such sample. */
  readonly value: (row: unknown) => number;
}

export interface MetricRow {
  /** `a="b",c="d"`, escaped; '' for none. */
  readonly labels: string;
}

/** How far down the metrics of traffic go: a listener's, its pool's too, or those of members as well. */
export type MetricsDetail = 'listener' | 'pool' | 'member';
