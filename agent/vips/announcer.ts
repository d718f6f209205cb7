// The contract of an announcer: what makes VIPs reachable at this host, and withdraws them. It decides nothing about
// traffic; keepalived (VRRP) is one.

import type { MetricFamily } from '../base/metric-family.ts';
import type { OwnFile } from '../host/own-files.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';

/**
 * Why a host is lowered, heaviest first: one whose dataplane does not work is worse than one that an operator wants to
 * spare, and that is worse than one that is a few changes behind. None of them keeps it from replacing a dead peer.
 */
export const standingReasons = ['haproxy', 'listeners', 'maintenance', 'failover', 'catching-up'] as const;
/**
 * `haproxy`: HAProxy does not answer. `listeners`: it does not listen where it should. `maintenance`: an operator locked
 * this host. `failover`: this host hands over to its peer. `catching-up`: it has not been at desired since its start.
 */
export type StandingReason = (typeof standingReasons)[number];

export interface Announcer {
  /** Files shared with the daemon that another process may remove. */
  readonly ownFiles: readonly OwnFile[];
  /** Never rejects: what cannot be done is a fault, and is retried. */
  start(): Promise<void>;
  /** Lets go of the daemon, which continues. */
  close(): Promise<void>;
  /** The VIPs of load balancers that changed; the cost is in proportion to these. */
  follow(keys: Iterable<string>, loadBalancers: ReadonlyMap<string, LoadBalancer>): void;
  /** What lowers this host now; [] for nothing. */
  standing(reasons: readonly StandingReason[]): void;
  /** Whether this host has the address now. */
  holds(address: string): boolean;
  /** VIPs of a load balancer that are not announced. */
  problemsOf(loadBalancer: Pick<LoadBalancer, 'key' | 'vips'>): readonly Problem[];
  families(): readonly MetricFamily[];
}
