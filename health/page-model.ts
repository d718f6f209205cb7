// What the status page shows, as the agent sends it to the browser: short texts and numbers, of bounded size.
// Values only. The page itself is in page/.

import type { OperatingStatus } from '../agent/model/operating-status.ts';

/** `served`, `served in part`, `not served`, as `headgate why` says it. */
export type Verdict = 'served' | 'served in part' | 'not served';

/** This host and its peer. */
export interface PageSummary {
  readonly host: string;
  readonly version: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** What is wrong with the dataplane, '' where nothing is. */
  readonly fault: string;
  readonly role: 'master' | 'backup' | 'fault' | 'unknown' | 'alone';
  readonly instances: readonly PageInstance[];
  /** undefined where this host has none. */
  readonly peer: PagePeer | undefined;
  /** What lowers this host's standing, in words. */
  readonly lowered: readonly string[];
  readonly maintenance: boolean;
  readonly haproxy: {
    readonly version: string;
    readonly serving: boolean;
    readonly reloadPending: readonly string[];
  };
  /** Load balancers by verdict, and the Services that are not ours. */
  readonly counts: Readonly<Record<Verdict, number>> & { readonly ignored: number };
  readonly members: { readonly ready: number; readonly down: number; readonly all: number };
  readonly vips: number;
  readonly problems: readonly PageProblem[];
  /** Of which `problems` shows the first. */
  readonly problemCount: number;
}

export interface PageInstance {
  readonly name: string;
  readonly state: string;
  /** ISO 8601; '' before the first transition. */
  readonly since: string;
  readonly priority: number;
  readonly anchors: readonly string[];
  readonly vips: number;
  /** Of the peer; '' where it is not known. */
  readonly peerState: string;
}

export interface PagePeer {
  readonly address: string;
  readonly isHeard: boolean;
  readonly version: string;
  /** Why it could not take over now, '' where it could. */
  readonly notReady: string;
  readonly lowered: readonly string[];
}

export interface PageProblem {
  readonly object: string;
  readonly reason: string;
  readonly message: string;
}

/** One page of the load balancers, those in trouble first. */
export interface PageList {
  readonly rows: readonly PageRow[];
  /** How many there are that the search finds. */
  readonly found: number;
  /** From 1 on. */
  readonly page: number;
  readonly pages: number;
}

export interface PageRow {
  /** `namespace/name`. */
  readonly key: string;
  readonly verdict: Verdict;
  /** The first ones. */
  readonly vips: readonly string[];
  readonly moreVips: number;
  /** `TCP 80`, the first ones. */
  readonly ports: readonly string[];
  readonly morePorts: number;
  /** Members that take new connections, those whose check fails, and all. */
  readonly ready: number;
  readonly down: number;
  readonly members: number;
  readonly problems: number;
}

/** The load balancer that is open on the page. */
export interface PageDetail {
  readonly key: string;
  readonly verdict: Verdict | 'not found' | 'not ours';
  readonly reasons: readonly string[];
  readonly vips: readonly string[];
  readonly listeners: readonly PageListener[];
  readonly moreListeners: number;
  readonly moreMembers: number;
}

export interface PageListener {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
  readonly addresses: readonly string[];
  /** Sessions now, and new ones in the last second; undefined where HAProxy does not serve it. */
  readonly sessions: number | undefined;
  readonly sessionRate: number | undefined;
  /** Those that take no new connections first. */
  readonly members: readonly PageMember[];
}

export interface PageMember {
  /** `address:port`. */
  readonly name: string;
  /** The pod or node; '' where unknown. */
  readonly target: string;
  readonly state: OperatingStatus;
  /** What its check has found, '' where it does not fail. */
  readonly why: string;
  readonly sessions: number;
  readonly sessionRate: number;
}

/** What HAProxy had to do, a value a second, the newest last. */
export interface PageLoad {
  readonly connections: readonly number[];
  readonly connectionRate: readonly number[];
  /** Percent of the time of HAProxy's threads. */
  readonly busy: readonly number[];
}

/** What one page shows, by the name of the event that carries it. */
export interface PageView {
  readonly summary: PageSummary;
  readonly list: PageList;
  readonly load: PageLoad;
  /** undefined where none is open. */
  readonly detail: PageDetail | undefined;
}
