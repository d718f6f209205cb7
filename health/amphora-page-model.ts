// The content of the status page of an amphora, as the agent sends it to the browser: short texts and lists of bounded
// length. Values only. The page itself is page/amphora.html.

/** The content of one page, by the name of the event that carries it. */
export interface AmphoraPageView {
  readonly summary: AmphoraPageSummary;
  readonly list: AmphoraPageList;
}

/** What `headgate status` shows, with sums over all listeners. */
export interface AmphoraPageSummary {
  readonly host: string;
  readonly version: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** '' for none. */
  readonly fault: string;
  readonly amphora: { readonly id: string; readonly topology: string; readonly address: string };
  readonly heartbeat: {
    readonly controllers: readonly string[];
    readonly sent: number;
    /** ISO 8601; '' before the first. */
    readonly lastAt: string;
    readonly lastTo: string;
    readonly fault: string;
  };
  readonly loadBalancers: readonly AmphoraPageLoadBalancer[];
  readonly listeners: { readonly all: number; readonly unserved: number };
  readonly members: AmphoraPageMembers;
}

export interface AmphoraPageLoadBalancer {
  readonly id: string;
  readonly listeners: number;
  /** HAProxy answers. */
  readonly isRunning: boolean;
  /** MD5 of the text that runs; '' if none. */
  readonly text: string;
  /** ISO 8601; '' if none runs. */
  readonly since: string;
  /** The text that the controller has sent last does not run. */
  readonly isBehind: boolean;
  /** Why HAProxy was reloaded last; '' if it was not. */
  readonly lastReload: string;
  readonly fault: string;
}

/** Members that are up or have no check, members that are down, and all. */
export interface AmphoraPageMembers {
  readonly ready: number;
  readonly down: number;
  readonly all: number;
}

export interface AmphoraPageList {
  /** The first listeners, the worst first. */
  readonly rows: readonly AmphoraPageRow[];
  readonly found: number;
}

/** A listener. Statuses are words of the heartbeat; '' for what is not in it, because it is not served. */
export interface AmphoraPageRow {
  readonly id: string;
  /** '' for a listener of UDP or SCTP. */
  readonly loadBalancer: string;
  readonly type: string;
  /** `ADDRESS:PORT`; '' if it is not known. */
  readonly place: string;
  readonly engine: 'haproxy' | 'kernel';
  readonly status: string;
  readonly connections: number;
  readonly members: AmphoraPageMembers;
  /** The first pools. */
  readonly pools: readonly AmphoraPagePool[];
  readonly morePools: number;
}

export interface AmphoraPagePool {
  readonly id: string;
  readonly status: string;
  /** The first members, those that are down before others. */
  readonly members: readonly { readonly id: string; readonly status: string }[];
  readonly moreMembers: number;
}
