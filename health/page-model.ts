// The content of the status page, as the agent sends it to the browser: short texts and numbers of bounded size.
// Values only. The page itself is in page/.

import type { Engine } from '../agent/model/load-balancer.ts';
import type { OperatingStatus } from '../agent/model/operating-status.ts';

/**
 * How a load balancer is served, as in `headgate why` and `headgate list`:
 * - `served`: every port accepts connections and passes them to a member, and what clients try succeeds, as far as is known.
 * - `served in part`: some of its ports, listeners, certificates or routes work, or part of what clients try fails.
 * - `no ready member`: its ports are served, but no member takes new connections.
 * - `members down`: its ports are served, but all ready members fail their health checks.
 * - `members fail`: its ports are served, but all that clients tried in the last minute failed at its members.
 * - `not served`: no port is served.
 */
export type Verdict =
  | 'served'
  | 'served in part'
  | 'no ready member'
  | 'members down'
  | 'members fail'
  | 'not served';

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
  /** undefined without BGP. */
  readonly bgp: PageBgp | undefined;
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
  /** Load balancers by verdict, without the pools of routes, which are parts of them. */
  readonly counts: Readonly<Record<Verdict, number>>;
  readonly members: { readonly ready: number; readonly down: number; readonly all: number };
  readonly vips: number;
  /** The first load balancers that are not fully served, the worst first. */
  readonly broken: readonly PageBroken[];
  /** undefined without a cluster. */
  readonly cluster: PageCluster | undefined;
  /** The first pools. */
  readonly pools: readonly PagePool[];
  readonly morePools: number;
  /** The first reasons, those of load balancers that are not fully served before others, then by number. */
  readonly problems: readonly PageProblems[];
  /** How many problems there are, shown or not, and how many objects have them. */
  readonly problemCount: number;
  readonly problemObjects: number;
}

/** A load balancer that is not fully served. */
export interface PageBroken {
  readonly key: string;
  readonly verdict: Verdict;
  /** The first sentence of `headgate why`. */
  readonly why: string;
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
  /** ISO 8601 by the minute; '' before the first answer. */
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
  /** The peer's state; '' if it is unknown. */
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

/** What routers have of this host, and the hosts that serve the same VIPs. */
export interface PageBgp {
  readonly asn: number;
  /** VIPs by how their routes are announced. */
  readonly vips: { readonly first: number; readonly last: number; readonly withheld: number };
  /** VIPs that it announces and no router has. */
  readonly unreached: number;
  readonly sessions: readonly PageSession[];
  /** Empty without the setting `hosts`. */
  readonly hosts: readonly PageBgpHost[];
}

/** The session with a router. */
export interface PageSession {
  readonly peer: string;
  readonly address: string;
  readonly asn: number;
  /** It is established. */
  readonly isUp: boolean;
  /** ISO 8601; '' if it is unknown. */
  readonly since: string;
  /** Why it is not established; '' if it is. */
  readonly why: string;
  readonly routes: number;
  /** `Up` or `Down`; '' without BFD. */
  readonly bfd: string;
}

/** A host of the setting `hosts`. */
export interface PageBgpHost {
  readonly name: string;
  readonly address: string;
  readonly isSelf: boolean;
  /** '' if its agent reports here. */
  readonly fault: string;
  readonly bfd: string;
  readonly version: string;
  readonly lowered: readonly string[];
  /** It has the same desired state as this host, and serves the same. */
  readonly hasSame: boolean;
}

/** The problems of one reason. */
export interface PageProblems {
  readonly reason: string;
  readonly count: number;
  /** One of them at least is of a load balancer that is not fully served, or of this host. */
  readonly isGrave: boolean;
  /** The first ones, each text once. */
  readonly shown: readonly PageProblem[];
  /** How many problems have a text that is shown. */
  readonly covered: number;
}

export interface PageProblem {
  /** The load balancer; '' if the problem is of none. */
  readonly key: string;
  readonly object: string;
  readonly message: string;
  /** How many objects have the same text. */
  readonly times: number;
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
  /** Members that accept new connections, members whose check fails, and all members, also of the pools of its routes. */
  readonly ready: number;
  readonly down: number;
  readonly members: number;
  /** Its own, and those of the pools of its routes. */
  readonly problems: number;
  /** Open connections, and new ones in a second; undefined if it is unknown. */
  readonly open: number | undefined;
  readonly rate: number | undefined;
  /** New connections in a second of the last two minutes, the newest last; empty if nothing is known. */
  readonly rates: readonly number[];
}

/** The load balancer that the page shows in detail. */
export interface PageDetail {
  readonly key: string;
  readonly verdict: Verdict | 'not found' | 'not ours';
  readonly reasons: readonly string[];
  readonly vips: readonly string[];
  readonly listeners: readonly PageListener[];
  readonly moreListeners: number;
  /** The pools that its routes send to, the worst first; empty without routes. */
  readonly pools: readonly PageRoutePool[];
  readonly morePools: number;
  /** The keys of the first load balancers whose routes send to it, if it is a pool. */
  readonly users: readonly string[];
  readonly moreMembers: number;
  /** As in its row, but up to date. */
  readonly open: number | undefined;
  readonly rate: number | undefined;
  readonly history: PageHistory;
  /** The address of a dashboard of this load balancer; '' for none. */
  readonly dashboard: string;
}

/** A Service that routes send to. */
export interface PageRoutePool
  extends Pick<PageRow, 'key' | 'verdict' | 'ready' | 'down' | 'members' | 'problems'> {
  /** `namespace/name` of the Service. */
  readonly service: string;
}

/** Values of the last two minutes, the newest last, null for an unknown one; empty if nothing is known. */
type PageValues = readonly (number | null)[];

/** Traffic, per second but for `open` and `latency`. */
export interface PageHistory {
  /** Seconds of each value. */
  readonly seconds: number;
  /** New connections, and those that are open. */
  readonly rate: PageValues;
  readonly open: PageValues;
  /** From clients, and to them. */
  readonly bytesIn: PageValues;
  readonly bytesOut: PageValues;
  /** Answers of 500 and more, or connections that reached no member. */
  readonly errors: PageValues;
  /** Attempts at a member that were made again. */
  readonly retries: PageValues;
  /** Milliseconds until a member answers. */
  readonly latency: PageValues;
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
  /** The first hosts of its routes; empty without routes. */
  readonly hosts: readonly PageHost[];
  readonly moreHosts: number;
  /** The first certificates, those that expire first before others. */
  readonly certificates: readonly PageCertificate[];
  readonly moreCertificates: number;
}

/** A hostname with its first routes. */
export interface PageHost {
  readonly host: string;
  readonly routes: readonly string[];
  readonly moreRoutes: number;
}

export interface PageCertificate {
  /** The Secret. */
  readonly name: string;
  /** ISO 8601. */
  readonly expires: string;
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

/** The traffic of all load balancers, and HAProxy's load. */
export interface PageLoad extends PageHistory {
  /** Percent of the time of HAProxy's threads, one value for each second, the newest last. */
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
