// The contract of a dataplane: what the loop, the reports, the metrics and the pair may ask of HAProxy, and of any
// other engine that forwards traffic. Nothing outside a dataplane's folder imports its own types.

import type { HeadgateError } from '../base/errors.ts';
import type { MetricFamily } from '../base/metric-family.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { DataplaneStatus, ListenerStats, Load } from './status.ts';

/** How one load balancer gets to its desired state. A dataplane's own plans say more. */
export interface Plan {
  readonly key: string;
  /** `runtime`: commands are enough; `reload`: they are not, though some may be sent all the same. */
  readonly effort: 'none' | 'runtime' | 'reload';
}

/** What became of plans, also if not all was done. */
export interface Outcome {
  /** Keys whose commands were sent and answered. */
  readonly acknowledged: ReadonlySet<string>;
  /** Keys whose members still differ from the desired ones: a reload, or the next try, brings them. */
  readonly pending: ReadonlySet<string>;
  /** Why it is not known what became of the rest. */
  readonly lost: HeadgateError | undefined;
}

/** What a dataplane has acknowledged of one member, and what health checks find. */
export interface MemberFact {
  /** `maint`: takes no connections and waits to be deleted; `gone`: is being deleted. */
  readonly state: 'ready' | 'drain' | 'maint' | 'gone';
  /** 0 to 256. */
  readonly weight: number;
  /** undefined without a monitor, and before its first result was read. */
  readonly isDown: boolean | undefined;
  /** Why the last check failed, for people; otherwise ''. */
  readonly cause: string;
}

/** What is known of what a dataplane serves; answered from memory. */
export interface DataplaneFacts {
  /**
   * What is proved to be served of a load balancer; `pending` while something is still to be done, undefined if nothing
   * is served. It may be less than desired, for the reasons that `problemsOf` gives.
   */
  served(key: string): LoadBalancer | 'pending' | undefined;
  /** Whether connections to this listener are taken, at this address if one is given. */
  serves(listener: string, address?: string): boolean;
  /** Whether anything of this load balancer may still be served at other addresses; true while that is not known. */
  servesElsewhere(key: string, addresses?: readonly string[]): boolean;
  /** By the member's name; empty if the listener is not served. */
  members(listener: string): ReadonlyMap<string, MemberFact>;
  /** What this host cannot do for the load balancer. */
  problemsOf(loadBalancer: LoadBalancer): readonly Problem[];
}

/** What the host's peer, or a client, would find wrong with a dataplane; '' for nothing. */
export interface Liveness {
  /** It does not answer the agent. */
  readonly control: string;
  /** It does not take connections. */
  readonly listeners: string;
}

export interface RoundPace {
  /** True if a scrape waits: as fast as the engine answers; otherwise at a pace that no client notices. */
  readonly isAwaited: boolean;
}

export interface LivenessOptions {
  /** Milliseconds for each answer. */
  readonly timeoutMs: number;
  /** Whether this host has the address; undefined while it is standby, where a connection would reach the peer. */
  readonly holds: ((address: string) => boolean) | undefined;
}

/** `S`: the settings that a dataplane takes. */
export interface Dataplane<P extends Plan = Plan, S = never> extends DataplaneFacts {
  /** Does what start() does before it needs the load balancers; a fault is start()'s. */
  prepare(): void;
  /** Finds or starts the engine; what cannot be had at once is tried in the background. */
  start(): Promise<void>;
  configure(settings: S): void;
  /** Lets go of the engine, which continues; what was not yet on disk is written. */
  close(): Promise<void>;
  /** Ends an engine that was started here, after close(). Connections have `graceMs` to end. */
  stop(graceMs: number): Promise<void>;
  /** Plans what brings these load balancers to desired. No plan for a key: nothing can be planned now. Changes nothing. */
  plan(keys: Iterable<string>): readonly P[];
  /** Carries plans out. Never throws: what could not be done is in the outcome, and is retried. */
  apply(plans: readonly P[]): Promise<Outcome>;
  status(): DataplaneStatus;
  /** Never throws. */
  liveness(options: LivenessOptions): Promise<Liveness>;
  /** Reads metrics of what is forwarded. */
  families(pace: RoundPace): Promise<readonly MetricFamily[]>;
  /** What a listener and its members do now; undefined if it is not served, or does not answer. */
  stats(listener: string): Promise<ListenerStats | undefined>;
  /** What there was to do in the last two minutes, a value a second, the newest last. */
  loads(): readonly Load[];
  /** The listeners that a dataplane left by an earlier agent serves; undefined if it does not say. */
  runningListeners(): Promise<readonly string[] | undefined>;
}
