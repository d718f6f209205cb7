// The keepalived dataplane, as the agent sees it: which addresses are VIPs, how this host stands, what VRRP does.

import type { Log } from '../log.ts';
import type { Family } from '../model.ts';
import type { StandingReason, VrrpSettings, VrrpState, VrrpStatus } from './vrrp.ts';

export interface KeepalivedSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly keepalived: string;
  /** `external`: something else starts keepalived and starts it again. */
  readonly keepalivedSupervisor: 'agent' | 'external';
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly vrrp: VrrpSettings;
}

/** What the dataplane counts; counters only go up. */
export interface KeepalivedMetrics {
  vrrpTransition(instance: string, state: string): void;
  keepalivedReloaded(result: 'done' | 'failed'): void;
  repaired(what: 'keepalived' | 'stale-vips'): void;
}

export interface KeepalivedOptions {
  readonly settings: KeepalivedSettings;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
  /** Told of every transition of an instance, of the first one that is seen, too. */
  readonly onState?: (state: VrrpState) => void;
}

export interface VipAddress {
  readonly address: string;
  readonly family: Family;
}

export interface KeepalivedDoors {
  /** Writes the files, then adopts the keepalived that runs or starts one. Errors: KEEPALIVED_MISSING, FILE_WRITE. */
  start(): Promise<void>;
  /** All VIPs; level-driven and coalesced, costs nothing where they are the same. */
  want(vips: Iterable<VipAddress>): void;
  /** What lowers this host now; [] is well. The caller decides on hysteresis. */
  standing(reasons: readonly StandingReason[]): void;
  status(): VrrpStatus;
  /** Lets go of keepalived, which goes on. */
  close(): Promise<void>;
  /** Ends the keepalived that was started here. Call close() first. */
  stopKeepalived(): Promise<void>;
}
