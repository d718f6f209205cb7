// What the HAProxy dataplane is given, and the metrics that it reports.

import type { Log } from '../host/log.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { HaproxySettings } from './settings.ts';
import type { Repair } from './worker/haproxy-monitor.ts';
import type { ReloadCause } from './worker/reload-arbiter.ts';

/** Counters of the dataplane's own work. */
export interface HaproxyMetrics {
  commandsAcknowledged(kind: string): void;
  commandRefused(kind: string): void;
  repaired(what: Repair): void;
  reloaded(cause: ReloadCause, result: 'done' | 'failed'): void;
  persisted(result: 'done' | 'failed'): void;
}

export interface HaproxyOptions {
  readonly settings: HaproxySettings;
  /** The desired state; read here, written by the loop. */
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** Makes the loop plan these load balancers again. */
  readonly replan: (keys: Iterable<string>) => void;
  /** Called once when the dataplane has started or adopted HAProxy: from then on it can say what is served. */
  readonly onKnown?: () => void;
  /** Health checks changed the state of members of these load balancers, or a limit on connections is reached. */
  readonly onChecked?: (keys: readonly string[]) => void;
  readonly metrics: HaproxyMetrics;
  readonly log: Log;
}
