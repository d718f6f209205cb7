// The settings of the HAProxy dataplane, and what differs for the landing.

import type { MetricsDetail } from '../base/metric-family.ts';
import type { RenderSettings } from './config/render-context.ts';
import type { HaproxyAccess } from './paths.ts';

export interface HaproxySettings extends RenderSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly haproxy: string;
  readonly haproxySupervisor: 'agent' | 'external';
  readonly haproxyAccess: HaproxyAccess;
  /** The network namespace of HAProxy, a name in /run/netns; '' for the agent's own. */
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

/** For the landing: reloads without a rest, because each takes some 25 ms, and small old workers, of which it may have more. */
export function ofLanding(settings: HaproxySettings): HaproxySettings {
  return { ...settings, reloadInterval: 1, maxOldWorkers: 25 };
}
