// The content of the status page, as the agent sends it to the browser: short texts and numbers of bounded size.
// Values only. The page itself is in page/.

import type { Engine } from '../agent/model/load-balancer.ts';
import type { OperatingStatus } from '../agent/model/operating-status.ts';

/**
 * How a load balancer is served, as in `headgate why` and `headgate list`:
 * - `served`: every port accepts connections and passes them to a member.
 * - `served in part`: some of its ports do.
 * - `no ready member`: its ports are served, but no member takes new connections.
 * - `members down`: its ports are served, but all ready members fail their health checks.
 * - `not served`: no port is served.
 */
export type Verdict = 'served' | 'served in part' | 'no ready member' | 'members down' | 'not served';

/** This host and its peer. */
export interface PageSummary {
  readonly host: string;
  readonly version: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** The dataplane's fault; '' for none. */
  readonly fault: string;
  readonly role: 'master' | 'backup' | 'fault' | 'unknown' | 'alone';
  readonly instances: readonly PageInstance[];
  /** undefined if this host has no peer. */
  readonly peer: PagePeer | undefined;
  /** Reasons that lower this host's standing. */
  readonly lowered: readonly string[];
  readonly maintenance: boolean;
  /** The kernel's part of the traffic; undefined if it has none. */
  readonly kernel: PageKernel | undefined;
  /** What the next agent, or a reboot, starts from. */
  readonly disk: PageDisk;
  /** The address of a dashboard; '' for none. */
  readonly dashboard: string;
  readonly haproxy: {
    readonly version: string;
    readonly serving: boolean;
    readonly reloadPending: readonly string[];
  };
  /** Load balancers by verdict, and Services that Headgate does not serve. */
  readonly counts: Readonly<Record<Verdict, number>> & { readonly ignored: number };
  readonly members: { readonly ready: number; readonly down: number; readonly all: number };
  readonly vips: number;
  /** undefined without a cluster. */
  readonly cluster: PageCluster | undefined;
  /** The first pools. */
  readonly pools: readonly PagePool[];
  readonly morePools: number;
  /** The first reasons. */
  readonly problems: readonly PageProblems[];
  /** How many problems there are, shown or not. */
  readonly problemCount: number;
}

export interface PageKernel {
  /** Load balancers with ports that the kernel forwards. */
  readonly loadBalancers: number;
  /** Why it does not forward all of them; '' if it does. */
  readonly fault: string;
  /** Whether its flows are copied to the peer: `on`, `off`, or the fault. */
  readonly sync: string;
}

/** The state of the agent on disk. */
export interface PageDisk {
  readonly folder: string;
  /** When the agent has written anything there, ISO 8601 by the minute; '' for not yet. */
  readonly writtenAt: string;
  /** The files that are not up to date, and why. */
  readonly faults: readonly { readonly file: string; readonly why: string }[];
}

/** The API server, and which agent writes to it. */
export interface PageCluster {
  readonly isSynced: boolean;
  /** Why the last request failed; '' if it did not. */
  readonly fault: string;
  /** ISO 8601; '' before the first answer. */
  readonly lastAnswer: string;
  readonly isWriter: boolean;
  /** The agent that writes; '' if it is unknown. */
  readonly writer: string;
}

/** One family of an address pool; the counts are decimal numbers of any size. */
export interface PagePool {
  readonly name: string;
  readonly family: 'v4' | 'v6';
  readonly free: string;
  readonly used: string;
}

export interface PageInstance {
  readonly name: string;
  readonly state: string;
  /** ISO 8601; '' before the first transition. */
  readonly since: string;
  readonly priority: number;
  readonly anchors: readonly string[];
  readonly vips: number;
  /** Of the peer; '' if it is unknown. */
  readonly peerState: string;
}

export interface PagePeer {
  readonly address: string;
  /** This host receives its reports. */
  readonly isHeard: boolean;
  readonly version: string;
  /** Why it cannot take over now; '' if it can. */
  readonly notReady: string;
  readonly lowered: readonly string[];
}

/** The problems of one reason. */
export interface PageProblems {
  readonly reason: string;
  readonly count: number;
  /** The first ones. */
  readonly shown: readonly PageProblem[];
}

export interface PageProblem {
  /** The load balancer; '' if the problem is of none. */
  readonly key: string;
  readonly object: string;
  readonly message: string;
}

/** The columns by which the list can be sorted. */
export type PageColumn = 'name' | 'members' | 'open' | 'rate' | 'state';

/** One page of the load balancers. */
export interface PageList {
  readonly rows: readonly PageRow[];
  /** Load balancers that match the search. */
  readonly found: number;
  /** From 1. */
  readonly page: number;
  readonly pages: number;
}

export interface PageRow {
  /** `namespace/name`. */
  readonly key: string;
  readonly verdict: Verdict;
  /** It has ports that the kernel forwards. */
  readonly isOfKernel: boolean;
  readonly status: OperatingStatus;
  /** The first VIPs. */
  readonly vips: readonly string[];
  readonly moreVips: number;
  /** The first ports, such as `TCP 80`. */
  readonly ports: readonly string[];
  readonly morePorts: number;
  /** Members that accept new connections, members whose check fails, and all members. */
  readonly ready: number;
  readonly down: number;
  readonly members: number;
  readonly problems: number;
  /** Open connections, and new ones in a second; undefined if it is unknown. */
  readonly open: number | undefined;
  readonly rate: number | undefined;
}

/** The load balancer that the page shows in detail. */
export interface PageDetail {
  readonly key: string;
  readonly verdict: Verdict | 'not found' | 'not ours';
  readonly reasons: readonly string[];
  readonly vips: readonly string[];
  readonly listeners: readonly PageListener[];
  readonly moreListeners: number;
  readonly moreMembers: number;
  /** As in its row, but up to date. */
  readonly open: number | undefined;
  readonly rate: number | undefined;
  readonly history: PageHistory;
  /** The address of a dashboard of this load balancer; '' for none. */
  readonly dashboard: string;
}

/** Open connections, and new ones in a second, the newest last; empty if nothing is known. */
export interface PageHistory {
  /** Of each value. */
  readonly seconds: number;
  readonly open: readonly number[];
  readonly rate: readonly number[];
}

export interface PageListener {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
  readonly addresses: readonly string[];
  readonly engine: Engine;
  readonly isServed: boolean;
  /** Current sessions, and new sessions in the last second; undefined if they are unknown, as those of the kernel. */
  readonly sessions: number | undefined;
  readonly sessionRate: number | undefined;
  /** First those that accept no new connections. */
  readonly members: readonly PageMember[];
}

export interface PageMember {
  /** `address:port`. */
  readonly name: string;
  /** The pod or node; '' if it is unknown. */
  readonly target: string;
  readonly state: OperatingStatus;
  /** Why its check fails; '' if it does not fail. */
  readonly why: string;
  /** undefined if the engine does not count them. */
  readonly sessions: number | undefined;
  readonly sessionRate: number | undefined;
}

/** HAProxy's load, one value per second, the newest last. */
export interface PageLoad {
  readonly connections: readonly number[];
  readonly connectionRate: readonly number[];
  /** Percent of the time of HAProxy's threads. */
  readonly busy: readonly number[];
}

/** The content of one page, by the name of the event that carries it. */
export interface PageView {
  readonly summary: PageSummary;
  readonly list: PageList;
  /** The first namespaces that have load balancers. */
  readonly namespaces: readonly string[];
  readonly load: PageLoad;
  /** undefined if none is open. */
  readonly detail: PageDetail | undefined;
}
