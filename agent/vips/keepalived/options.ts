// What the keepalived dataplane is made of by its owner. Types only.

import type { Log } from '../../host/log.ts';
import type { VrrpSettings } from '../vrrp.ts';
import type { KeepalivedMetrics } from './metrics.ts';

export interface KeepalivedSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly keepalived: string;
  /** `external`: something else starts keepalived and starts it again. */
  readonly keepalivedSupervisor: 'agent' | 'external';
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  /** The only ones that may change later, by configure(). */
  readonly vrrp: VrrpSettings;
  /** Milliseconds. */
  readonly auditInterval: number;
}

export interface KeepalivedOptions {
  readonly settings: KeepalivedSettings;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
  /** Of these load balancers other VIPs are refused than before. */
  readonly onRefused?: (keys: readonly string[]) => void;
}
