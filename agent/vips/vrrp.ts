// The types and values of VRRP on this host: settings, states, status, and how far each reason lowers the priority.

import { hash } from 'node:crypto';
import type { SourceGroups } from '../model/source-groups.ts';
import type { AnnouncerStatus, StandingReason } from './announcer.ts';

/** One virtual router: an address that never changes, and the VIPs that move with it. */
export interface VrrpInstanceSettings {
  /** 1 to 255; the same on both hosts of a pair, different for each pair of the network. */
  readonly virtualRouterId: number;
  /** 200 to 250; of two hosts that are well the one with the higher priority is master; with equal ones nothing moves. */
  readonly priority: number;
  /**
   * Addresses of one family or both. The first one never changes, so that the advertisements of both hosts match; all are
   * source addresses of the packets to members.
   */
  readonly anchors: readonly string[];
}

export interface VrrpSettings {
  readonly interface: string;
  /** The source of this host's advertisements; of the family of each instance's first anchor. */
  readonly address: string;
  /** The addresses of the other hosts, of the same family. */
  readonly peers: readonly string[];
  /** Milliseconds, a multiple of ten. */
  readonly advertInterval: number;
  /** Several instances share the VIPs. */
  readonly instances: readonly VrrpInstanceSettings[];
}

export const VRRP_STATES = ['master', 'backup', 'fault', 'unknown'] as const;
export type VrrpStateName = (typeof VRRP_STATES)[number];

/** A transition of one instance. */
export interface VrrpState {
  readonly instance: string;
  readonly state: VrrpStateName;
  /** The time of the transition. */
  readonly since: Date;
}

export interface VrrpInstanceStatus {
  /** `vrrp-51`, after its virtual router id. */
  readonly name: string;
  readonly virtualRouterId: number;
  /** `unknown` if keepalived does not run or has not reported a state yet. */
  readonly state: VrrpStateName;
  /** The time of the last transition, ISO 8601; '' before the first. */
  readonly since: string;
  /** Since the start of the agent. */
  readonly transitions: number;
  /** The current one, lowered by the standing of this host. */
  readonly priority: number;
  readonly anchors: readonly string[];
  /** The number of its VIPs. */
  readonly vips: number;
}

export interface VrrpStatus extends AnnouncerStatus {
  /** '' if it is not known yet. */
  readonly version: string;
  /** 0 if keepalived does not run. */
  readonly pid: number;
  /** How far advertisements are authenticated; see AuthStatus. */
  readonly auth: {
    readonly level: 'off' | 'receive' | 'sign' | 'enforce';
    readonly key: string;
    readonly why: string;
  };
  readonly instances: readonly VrrpInstanceStatus[];
  /** The number of VIPs that keepalived was seen to have. */
  readonly vips: number;
  /** Names of the instances that have a second master. */
  readonly rivals: readonly string[];
  /** VIPs that are refused, with the reason as half a sentence. */
  readonly refused: readonly { readonly address: string; readonly reason: string }[];
  /** What on this host is not as VRRP needs it, with the remedy. */
  readonly unready: readonly { readonly what: string; readonly detail: string }[];
}

/**
 * The steps are larger than the largest difference of two priorities, 50: a host that cannot serve ranks below a host
 * that an operator locked, below a host that is behind, below a host that is well. The priority stays above 0, so that
 * the host still replaces a dead peer.
 */
const LOWERED_BY: Readonly<Record<StandingReason, number>> = {
  haproxy: 153,
  listeners: 153,
  maintenance: 102,
  failover: 102,
  'catching-up': 51,
};

/** The number by which the priority of each instance is lowered; 0 without a reason. */
export function loweredBy(reasons: readonly StandingReason[]): number {
  return Math.max(0, ...reasons.map((reason) => LOWERED_BY[reason]));
}

/** The lowered priorities, by the name of the instance. */
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

/**
 * The instance that a VIP goes with. With two instances of opposite priorities each host carries about half of the VIPs.
 * The same on both hosts and forever, because a VIP that changes its instance is without a host for a moment.
 */
export function instanceOf(vip: string, instances: readonly VrrpInstanceSettings[]): VrrpInstanceSettings {
  const inOrder = [...instances].sort((a, b) => a.virtualRouterId - b.virtualRouterId);
  const share =
    inOrder.length === 1 ? 0 : Number.parseInt(hash('sha256', vip).slice(0, 8), 16) % inOrder.length;
  return inOrder[share] as VrrpInstanceSettings;
}

/** The anchors of each virtual router, and the router that a VIP goes with: 0 if it has no anchor of the VIP's family. */
export function anchorGroups(vrrp: VrrpSettings | undefined): SourceGroups {
  const instances = vrrp?.instances ?? [];
  const groups = instances.map(({ virtualRouterId: id, anchors: addresses }) => ({ id, addresses }));
  const groupOf = (vip: string): number => {
    if (instances.length === 0) return 0;
    const { virtualRouterId, anchors } = instanceOf(vip, instances);
    return anchors.some((anchor) => anchor.includes(':') === vip.includes(':')) ? virtualRouterId : 0;
  };
  return { groups, groupOf };
}
