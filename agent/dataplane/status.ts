// What a dataplane says of itself, as plain data, for `status`, the page and the metrics.

export interface DataplaneStatus {
  /** Of the program; '' while it is not reached. */
  readonly version: string;
  /** 0 while there is none. */
  readonly workerPid: number;
  readonly serving: boolean;
  /** It has been absent for longer than a restart takes. */
  readonly isAway: boolean;
  /** A process is being replaced by another, on the agent's order. */
  readonly isReloading: boolean;
  /** Why a reload is due, one word each. */
  readonly reloadPending: readonly string[];
  /** Members that are out of use and wait for the end of their connections. */
  readonly serversToDelete: number;
  /** How many load balancers it refuses. */
  readonly rejected: number;
  /** Addresses and ports that cannot be listened on, with the reason. */
  readonly blocked: readonly string[];
  /** What is wrong now, '' for nothing. */
  readonly fault: string;
  /** Why the state on disk is not the desired one, '' if it is. */
  readonly persistFault: string;
  readonly maxConnections: number;
}

/** What a dataplane has to do at one moment. */
export interface Load {
  /** Open now. */
  readonly connections: number;
  /** New ones in the last second. */
  readonly connectionRate: number;
  /** Percent of the time of its threads. */
  readonly busy: number;
}

/** What a listener and its members do at one moment. */
export interface ListenerStats {
  readonly sessions: number;
  /** New ones in the last second. */
  readonly sessionRate: number;
  /** By the member's name. */
  readonly servers: ReadonlyMap<string, ServerStats>;
}

export interface ServerStats {
  readonly sessions: number;
  readonly sessionRate: number;
}
