// What the HAProxy dataplane is given, and the metrics that it reports.

import type { Log } from '../host/log.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { BootedWorker } from './booted-worker.ts';
import type { PemTexts } from './config/certificate-files.ts';
import type { HaproxySettings } from './settings.ts';
import type { Statistics } from './stats/statistics.ts';
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
  /** Key: a load balancer whose metrics it gives; those of `desired` if absent. */
  readonly counted?: ReadonlyMap<string, LoadBalancer>;
  /** Makes the loop plan these load balancers again. */
  readonly replan: (keys: Iterable<string>) => void;
  /** Called once when the dataplane has started or adopted HAProxy: from then on it can say what is served. */
  readonly onKnown?: () => void;
  /** Health checks changed the state of members of these load balancers, or a limit on connections is reached. */
  readonly onChecked?: (keys: readonly string[]) => void;
  /** It is the landing: in folders of its own, and reloaded at once. */
  readonly isLanding?: boolean;
  /** Another HAProxy of this agent serves this load balancer, and this one does not; absent: none does. */
  readonly isElsewhere?: (key: string) => boolean;
  /** The worker of another HAProxy of this agent, which may have the same listeners: both can listen. */
  readonly otherWorker?: () => BootedWorker | undefined;
  /** Shared statistics: the main HAProxy counts for the landing. */
  readonly statistics?: Statistics;
  /** The texts of the certificates in the desired state. */
  readonly pems?: PemTexts;
  readonly metrics: HaproxyMetrics;
  readonly log: Log;
}
