// How an engine that forwards traffic is, and what it has counted: for the status, the metrics, the page and the peer.

import type { MetricFamily } from '../base/metric-family.ts';
import type { DataplaneStatus, ListenerStats, ListenerTraffic, Load } from './status.ts';

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

export interface Meter {
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
}
