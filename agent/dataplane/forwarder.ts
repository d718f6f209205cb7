// What forwards traffic, as the loop and the reports have it: brings load balancers to their desired state, and answers from memory
// what is served.

import type { HeadgateError } from '../base/errors.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { RecentFailures } from './recent-failures.ts';

/** The way of one load balancer to its desired state. Each dataplane extends it. */
export interface Plan {
  readonly key: string;
  /** `runtime`: commands are enough; `reload`: a reload is needed, and commands may be sent before it. */
  readonly effort: 'none' | 'runtime' | 'reload';
  /** The reload that it needs is that of another load balancer; absent: its own. */
  readonly waits?: boolean;
}

/** The result of plans, also if some failed. */
export interface Outcome {
  /** Keys whose commands were sent and answered. */
  readonly acknowledged: ReadonlySet<string>;
  /** Keys whose members still differ from the desired ones until a reload or a retry. */
  readonly pending: ReadonlySet<string>;
  /** Why the result of the other keys is unknown. */
  readonly lost: HeadgateError | undefined;
}

/** The acknowledged state of one member, and the result of its health check. */
export interface MemberFact {
  /** `maint`: takes no connections and is due to be deleted; `gone`: is being deleted. */
  readonly state: 'ready' | 'drain' | 'maint' | 'gone';
  /** 0 to 256. */
  readonly weight: number;
  /** undefined without a health check, and before its first result is read. */
  readonly isDown: boolean | undefined;
  /** Why the last check failed, for people; '' if it did not. */
  readonly cause: string;
}

/** The load balancers that a dataplane serves; from memory. */
export interface DataplaneFacts {
  /**
   * The load balancer as it is served; `pending` until all changes are acknowledged, undefined if it is not served. It
   * may be less than desired, for the reasons that `problemsOf` gives.
   */
  served(key: string): LoadBalancer | 'pending' | undefined;
  /** True if the listener takes connections, at this address if one is given. */
  serves(listener: string, address?: string): boolean;
  /** True if the load balancer may still be served at other addresses than these, or if that is unknown. */
  servesElsewhere(key: string, addresses?: readonly string[]): boolean;
  /** By the member's name; empty if the listener is not served. */
  members(listener: string): ReadonlyMap<string, MemberFact>;
  /** What the members of a listener, or the routes that it has, failed clients in the last minute; undefined for nothing. */
  failures(listener: string): RecentFailures | undefined;
  /** The parts of the load balancer that this host cannot serve. */
  problemsOf(loadBalancer: LoadBalancer): readonly Problem[];
}

export interface Forwarder<P extends Plan = Plan> extends DataplaneFacts {
  /** Plans the way of these load balancers to desired; no plan for a key that cannot be planned now. Changes nothing. */
  plan(keys: Iterable<string>): readonly P[];
  /** Carries plans out. Never throws: the outcome has what failed, which is retried. */
  apply(plans: readonly P[]): Promise<Outcome>;
}

/** All forwarders of this host as one, as the loop has them. */
export interface Forwarding<P extends Plan = Plan> extends Pick<Forwarder<P>, 'plan' | 'apply'> {
  /**
   * Called before plan(), when these load balancers have changed: a listener that changes to another engine stays with the
   * former one until the other serves it.
   */
  follow(keys: Iterable<string>): void;
}
