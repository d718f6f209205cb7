// The settings and options of the keepalived announcer. Types only.

import type { Log } from '../../host/log.ts';
import type { VrrpSettings } from '../vrrp.ts';

export interface KeepalivedSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly keepalived: string;
  /** `external`: another program, such as systemd, starts and restarts keepalived. */
  readonly keepalivedSupervisor: 'agent' | 'external';
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  /** Changes by configure(), as does `auditInterval`; the other settings are fixed. */
  readonly vrrp: VrrpSettings;
  /** A file with the key of advertisements, '' for none; changes by configure(), too. */
  readonly vrrpKey?: string;
  /** Milliseconds. */
  readonly auditInterval: number;
}

/** Counters, which only go up. */
export interface KeepalivedMetrics {
  keepalivedReloaded(result: 'done' | 'failed'): void;
  repaired(what: 'keepalived' | 'stale-vips' | 'file'): void;
}

export interface KeepalivedOptions {
  readonly settings: KeepalivedSettings;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
  /** The refused VIPs of these load balancers have changed. */
  readonly onRefused?: (keys: readonly string[]) => void;
  /** False for VIPs that another announcer of this host has. */
  readonly isOwn?: (address: string) => boolean;
}
