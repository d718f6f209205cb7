// The form in which the parts of the agent give their metrics to those who write them out: made for many rows, whose
// labels are written once and whose numbers are only looked up. Values only.

export interface MetricFamily {
  /** Of a counter it ends in `_total`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary' | 'unknown';
  readonly help: string;
  readonly parts: readonly MetricPart[];
}

/** Samples of a family that only differ in their row. */
export interface MetricPart {
  /** What the name goes on with: `_bucket`, `_sum`. */
  readonly suffix?: string;
  /** Besides the row's own: `code="2xx"`, escaped; '' for none. */
  readonly labels: string;
  readonly rows: readonly MetricRow[];
  /**
   * Where it is given, the array of rows comes again at the next scrape for as long as it has the same rows with the
   * same labels, and with the same number here for as long as none of them has changed.
   */
  readonly asOf?: number;
  /** NaN: the row has no such sample. */
  readonly value: (row: unknown) => number;
}

export interface MetricRow {
  /** `a="b",c="d"`, escaped; '' for none. */
  readonly labels: string;
}
