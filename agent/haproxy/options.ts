// What the HAProxy dataplane is given, and what it tells of itself.

import type { MetricsDetail } from '../base/metric-family.ts';
import type { Log } from '../host/log.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { RenderSettings } from './config/render-context.ts';
import type { HaproxyAccess } from './process/process.ts';
import type { Repair } from './worker/haproxy-monitor.ts';
import type { ReloadCause } from './worker/reload-arbiter.ts';

export interface HaproxySettings extends RenderSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly haproxy: string;
  readonly haproxySupervisor: 'agent' | 'external';
  readonly haproxyAccess: HaproxyAccess;
  /** The network namespace that it runs in, a name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly maxConnections: number;
  readonly drainTimeout: number;
  readonly reloadInterval: number;
  /** Megabytes. */
  readonly oldWorkerMemory: number;
  readonly auditInterval: number;
  readonly metricsDetail: MetricsDetail;
  readonly healthReadInterval: number;
}

/** What the dataplane tells about itself; counters only go up. */
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
  /** Asks the loop to plan these again. */
  readonly replan: (keys: Iterable<string>) => void;
  /** It is known by now what is served and what is not, of everything. */
  readonly onKnown?: () => void;
  /** Checks have found something else of members of these load balancers. */
  readonly onChecked?: (keys: readonly string[]) => void;
  readonly metrics: HaproxyMetrics;
  readonly log: Log;
}
