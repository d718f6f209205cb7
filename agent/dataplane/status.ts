// The status of a dataplane as plain data, for `headgate status`, the page and the metrics.

import type { DiskFile } from '../base/disk-file.ts';

/** With the state of its worker, if the engine has one. */
export interface DataplaneStatus extends EngineStatus, WorkerStatus {}

export interface EngineStatus {
  readonly serving: boolean;
  /** The fault of now, '' if there is none. */
  readonly fault: string;
  /** What this host cannot serve, such as a protocol, and why; '' for nothing. The host is ready all the same. */
  readonly unserved: string;
  /** Why the state on disk is not the desired state, '' if it is. */
  readonly persistFault: string;
  /** What a crash or a reboot starts from. */
  readonly files: readonly DiskFile[];
}

/** A worker is a process that reloads replace. */
export interface WorkerStatus {
  /** The version of the program; '' until it is connected. */
  readonly version: string;
  /** 0 if there is no worker. */
  readonly workerPid: number;
  /** True if it is absent for longer than a restart takes. */
  readonly isAway: boolean;
  /** True while a reload by the agent is under way. */
  readonly isReloading: boolean;
  /** The reasons of a due reload, one word each. */
  readonly reloadPending: readonly string[];
  /** The number of withdrawn members whose connections have not ended. */
  readonly serversToDelete: number;
  /** The number of refused load balancers. */
  readonly rejected: number;
  /** Addresses and ports that cannot be bound, with the reason. */
  readonly blocked: readonly string[];
  readonly maxConnections: number;
  /** The number of load balancers in the landing. */
  readonly landed: number;
}

/** An engine that has no workers. */
export const NO_WORKER: WorkerStatus = {
  version: '',
  workerPid: 0,
  isAway: false,
  isReloading: false,
  reloadPending: [],
  serversToDelete: 0,
  rejected: 0,
  blocked: [],
  maxConnections: 0,
  landed: 0,
};

/** The load of a dataplane at one moment. */
export interface Load {
  /** Percent of the time of its threads. */
  readonly busy: number;
}

/** The sessions of a listener and its members at one moment. */
export interface ListenerStats {
  readonly sessions: number;
  /** New ones in the last second. */
  readonly sessionRate: number;
  /** By the member's name. */
  readonly servers: ReadonlyMap<string, ServerStats>;
}

/** What a listener has counted, when the last round of the metrics read it. */
export interface ListenerTraffic {
  readonly name: string;
  /** Connections so far, or flows; never goes back. */
  readonly total: number;
  /** Open connections, those of replaced workers included; NaN if the engine does not count them. */
  readonly open: number;
  /** From clients, and to them, so far. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Answers of 500 and more so far, or connections that reached no member if HTTP is not read; NaN if not counted. */
  readonly errors: number;
  /** Attempts at a member that were made again so far; NaN if not counted. */
  readonly retries: number;
  /** Milliseconds until a member answers, the mean of its last requests; NaN if not measured. */
  readonly latency: number;
}

export interface ServerStats {
  readonly sessions: number;
  readonly sessionRate: number;
}

/** The status of flows that the kernel's dataplane copies to the peer. */
export interface ConnectionSyncStatus {
  /** '' until the program is found. */
  readonly version: string;
  /** 0 if conntrackd does not run. */
  readonly pid: number;
  readonly peer: string;
  /** The peer's conntrackd has sent something in the last seconds. */
  readonly isPeerHeard: boolean;
  /** '' for none. */
  readonly fault: string;
}
