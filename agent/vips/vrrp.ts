// The words in which this host's part of VRRP is spoken of: what the settings say, what keepalived does, what lowers it.
// Values only.

import type { Announcer, StandingReason } from './announcer.ts';

/** One virtual router: an address that never changes, and the VIPs that go where it goes. */
export interface VrrpInstanceSettings {
  /** 1 to 255; the same on all hosts of the pair, another one for each pair of the network. */
  readonly virtualRouterId: number;
  /** 200 to 250; the higher one is master where both are well, equal ones stay as they are. */
  readonly priority: number;
  /** One address, or one of each family; never changes, so that what the hosts announce to each other is always alike. */
  readonly anchors: readonly string[];
}

export interface VrrpSettings {
  readonly interface: string;
  /** Of this host, for advertisements; of the family of each instance's first anchor. */
  readonly address: string;
  /** Of the other hosts; the same family. */
  readonly peers: readonly string[];
  /** Milliseconds, in tens. */
  readonly advertInterval: number;
  /** Two or more share the VIPs between them. By virtual router id. */
  readonly instances: readonly VrrpInstanceSettings[];
}

export const VRRP_STATES = ['master', 'backup', 'fault', 'unknown'] as const;
export type VrrpStateName = (typeof VRRP_STATES)[number];

/** A transition of one instance. */
export interface VrrpState {
  readonly instance: string;
  readonly state: VrrpStateName;
  /** When it was reached. */
  readonly since: Date;
}

export interface VrrpInstanceStatus {
  /** `vrrp-51`, after its virtual router id. */
  readonly name: string;
  readonly virtualRouterId: number;
  /** `unknown` while keepalived does not run, or has not told yet. */
  readonly state: VrrpStateName;
  /** Of the last transition, ISO 8601; '' before the first. */
  readonly since: string;
  /** Transitions since the agent began to watch. */
  readonly transitions: number;
  /** As it is with what lowers it. */
  readonly priority: number;
  readonly anchors: readonly string[];
  /** How many VIPs go with it. */
  readonly vips: number;
}

export interface VrrpStatus {
  /** '' while it is not known. */
  readonly version: string;
  /** 0 where keepalived does not run. */
  readonly pid: number;
  readonly instances: readonly VrrpInstanceStatus[];
  /** VIPs of the model that keepalived was seen to have. */
  readonly vips: number;
  /** What lowers this host's standing now. */
  readonly lowered: readonly StandingReason[];
  /** Instances of which another host is master, too; names. */
  readonly rivals: readonly string[];
  /** VIPs that are refused, each with the reason in words. */
  readonly refused: readonly { readonly address: string; readonly reason: string }[];
  /** What is wrong now, '' where nothing is. */
  readonly fault: string;
}

/** An announcer that moves VIPs between hosts by VRRP. */
export interface VrrpAnnouncer extends Announcer {
  status(): VrrpStatus;
}

/**
 * A host that cannot serve ranks below one that shall not, that one below one that is behind, and all of them below one
 * that is well, whatever their priorities: these differ by 50 at most. Nothing lowers a host so far that it would not
 * replace one that is dead.
 */
const LOWERED_BY: Readonly<Record<StandingReason, number>> = {
  haproxy: 153,
  listeners: 153,
  maintenance: 102,
  failover: 102,
  'catching-up': 51,
};

/** How far the priority of every instance is lowered; 0 where there is no reason. */
export function loweredBy(reasons: readonly StandingReason[]): number {
  return Math.max(0, ...reasons.map((reason) => LOWERED_BY[reason]));
}

/** What VRRP has them at, by the name of the instance. */
export function prioritiesOf(
  instances: readonly VrrpInstanceSettings[],
  reasons: readonly StandingReason[],
): Readonly<Record<string, number>> {
  const lowered = loweredBy(reasons);
  return Object.fromEntries(
    instances.map(({ virtualRouterId, priority }) => [
      instanceName(virtualRouterId),
      Math.max(1, priority - lowered),
    ]),
  );
}

export function instanceName(virtualRouterId: number): string {
  return `vrrp-${virtualRouterId}`;
}
