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
  /** A member failed clients: it rests, or its pool does not let it. */
  ejected(result: 'rested' | 'kept'): void;
  persisted(result: 'done' | 'failed'): void;
}

export interface HaproxyOptions {
  readonly settings: HaproxySettings;
  /** The desired state; read here, written by the loop. */
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** Absent if this HAProxy is the only one of the agent. */
  readonly other?: OtherHaproxy;
  /** Makes the loop plan these load balancers again. */
  readonly replan: (keys: Iterable<string>) => void;
  readonly hooks?: HaproxyHooks;
  /** The texts of the certificates in the desired state. */
  readonly pems?: PemTexts;
  readonly metrics: HaproxyMetrics;
  readonly log: Log;
}

/** Another HAProxy of this agent, with which this one shares the load balancers. */
export interface OtherHaproxy {
  /** The other one is the main one: this one is the landing, in folders of its own, and reloaded at once. */
  readonly isMain: boolean;
  /** The other one serves this load balancer, and this one does not. */
  readonly hasAlone: (key: string) => boolean;
  /** It may have the same listeners: both can listen. */
  readonly worker: () => BootedWorker | undefined;
  /** Key: a load balancer of either, if this one counts for both. */
  readonly counted?: ReadonlyMap<string, LoadBalancer>;
  /** Shared statistics: the main HAProxy counts for the landing. */
  readonly statistics?: Statistics;
}

export interface HaproxyHooks {
  /** Called once when the dataplane has started or adopted HAProxy: from then on it can say what is served. */
  readonly onKnown?: () => void;
  /** Health checks changed the state of members of these load balancers, or a limit on connections is reached. */
  readonly onChecked?: (keys: readonly string[]) => void;
}
