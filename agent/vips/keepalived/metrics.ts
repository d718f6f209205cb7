// What the keepalived dataplane counts, for whoever keeps the metrics.

/** Counters only go up. */
export interface KeepalivedMetrics {
  keepalivedReloaded(result: 'done' | 'failed'): void;
  repaired(what: 'keepalived' | 'stale-vips' | 'file'): void;
}
