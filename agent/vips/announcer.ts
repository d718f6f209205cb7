// The contract of an announcer, which makes VIPs reachable at this host and withdraws them, such as VRRP with keepalived.
// An announcer does not decide about traffic.

import type { MetricFamily } from '../base/metric-family.ts';
import type { OwnFile } from '../host/own-files.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';

/** Reasons that lower the priority of a host, the heaviest first. A lowered host still replaces a dead peer. */
export const standingReasons = ['haproxy', 'listeners', 'maintenance', 'failover', 'catching-up'] as const;
/**
 * `haproxy`: HAProxy does not answer. `listeners`: HAProxy lacks listeners. `maintenance`: an operator locked this host.
 * `failover`: this host hands over to its peer. `catching-up`: not everything desired is served since the start.
 */
export type StandingReason = (typeof standingReasons)[number];

/**
 * Why this host does not announce an address, in one word; '' if it does. `unwanted`: no load balancer has it. `refused`:
 * problemsOf() says why. `standby`: another host announces it. `fault`: this host cannot. `stopped`: the daemon does not run.
 * `unknown`: the daemon has not reported yet.
 */
export type Withheld = '' | 'unwanted' | 'refused' | 'standby' | 'fault' | 'stopped' | 'unknown';

export interface AnnouncerStatus {
  /** The reasons that lower this host now. */
  readonly lowered: readonly StandingReason[];
  /** The fault of now, '' if there is none. */
  readonly fault: string;
}

/** `S`: what the status shows of it. */
export interface Announcer<S extends AnnouncerStatus = AnnouncerStatus> {
  /** Files shared with the daemon that another process may remove. */
  readonly ownFiles: readonly OwnFile[];
  /** Never rejects: an error is a fault, and is retried. */
  start(): Promise<void>;
  /** Stops watching the daemon, which continues. */
  close(): Promise<void>;
  /** After close(): stops a daemon that was started here, for demonstrations and tests. */
  stop(): Promise<void>;
  /** Takes over the VIPs of changed load balancers; the cost is in proportion to `keys`. */
  follow(keys: Iterable<string>, loadBalancers: ReadonlyMap<string, LoadBalancer>): void;
  /** Sets the reasons that lower this host now; [] for none. */
  standing(reasons: readonly StandingReason[]): void;
  withheld(address: string): Withheld;
  /** VIPs of a load balancer that are not announced. */
  problemsOf(loadBalancer: Pick<LoadBalancer, 'key' | 'vips' | 'listeners'>): readonly Problem[];
  families(): readonly MetricFamily[];
  status(): S;
}
