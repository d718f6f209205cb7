// The contract of a dataplane, which the loop, the reports, the metrics and the pair use for HAProxy and for any other
// engine that forwards traffic. Only the wiring imports from a dataplane's own folder.

import type { HeadgateError } from '../base/errors.ts';
import type { MetricFamily } from '../base/metric-family.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { RecentFailures } from './recent-failures.ts';
import type { DataplaneStatus, ListenerStats, ListenerTraffic, Load } from './status.ts';

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

/** The faults of a dataplane that matter to the peer and to clients; '' if there is none. */
export interface Liveness {
  /** It does not answer the agent. */
  readonly control: string;
  /** It does not take connections. */
  readonly listeners: string;
}

export interface RoundPace {
  /** True if a scrape waits: read as fast as the engine answers; otherwise so slowly that clients are not affected. */
  readonly isAwaited: boolean;
}

export interface LivenessOptions {
  /** Milliseconds for each answer. */
  readonly timeoutMs: number;
  /** True if this host has the address; undefined on a standby, from which a connection would reach the peer. */
  readonly holds: ((address: string) => boolean) | undefined;
}

/** All dataplanes of this host as one, as the loop has them. */
export interface Forwarding<P extends Plan = Plan, S = never> extends Dataplane<P, S> {
  /**
   * Called before plan(), when these load balancers have changed: a listener that changes to another engine stays with the
   * former one until the other serves it.
   */
  follow(keys: Iterable<string>): void;
}

/** `S`: the settings of the dataplane. */
export interface Dataplane<P extends Plan = Plan, S = never> extends DataplaneFacts {
  /** Begins the part of start() that does not need the load balancers; start() reports its errors. */
  prepare(): void;
  /** Adopts or starts the engine; retries in the background. */
  start(): Promise<void>;
  configure(settings: S): void;
  /** Disconnects from the engine, which continues, and writes what is not on disk yet. */
  close(): Promise<void>;
  /** The processes of its engine that an agent has started, and that continue after close(). */
  processes(): Promise<readonly number[]>;
  /** After close(): stops an engine that was started here. Connections have `graceMs` to end. */
  stop(graceMs: number): Promise<void>;
  /** Plans the way of these load balancers to desired; no plan for a key that cannot be planned now. Changes nothing. */
  plan(keys: Iterable<string>): readonly P[];
  /** Carries plans out. Never throws: the outcome has what failed, which is retried. */
  apply(plans: readonly P[]): Promise<Outcome>;
  /** True if the listener takes connections, and no reload or load of rules that is under way ends that. */
  continues(listener: string): boolean;
  status(): DataplaneStatus;
  /** Never throws. */
  liveness(options: LivenessOptions): Promise<Liveness>;
  /** Reads the metrics of the traffic. */
  families(pace: RoundPace): Promise<readonly MetricFamily[]>;
  /** The traffic of the listeners as of the last families(); from memory. */
  traffic(): Iterable<ListenerTraffic>;
  /** The current sessions of a listener and its members; undefined if it is not served, or the engine does not answer. */
  stats(listener: string): Promise<ListenerStats | undefined>;
  /** The load of the last two minutes, one value per second, the newest last. */
  loads(): readonly Load[];
  /** The listeners that an engine from before this agent serves; undefined if the engine does not answer. */
  runningListeners(): Promise<readonly string[] | undefined>;
  /** The listeners for which its engine takes connections by the files of an agent before this one. */
  listenersBefore(): Promise<readonly string[]>;
}
