// The state of the agent as plain data: for the command `status`, with all problems, and for the gauges of the metrics.
// Reads the parts of the agent; changes nothing.

import type { AgentState } from '../../../health/metrics.ts';
import type { AddressKeeper, AddressStatus } from '../../address-keeper/address-keeper.ts';
import type { DiskFile } from '../../base/disk-file.ts';
import type { Changes } from '../../changes.ts';
import type { EgressFacts, EgressStatus } from '../../dataplane/egress-facts.ts';
import type { DataplaneFacts } from '../../dataplane/forwarder.ts';
import type { Meter } from '../../dataplane/meter.ts';
import type { ConnectionSyncStatus, DataplaneStatus } from '../../dataplane/status.ts';
import type { ApiSource } from '../../kubernetes/api/api-source.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type { Listener, Member, Problem } from '../../model/load-balancer.ts';
import { ownerOf, serviceOfPool } from '../../model/names.ts';
import type { BgpHost } from '../../pair/bgp-host.ts';
import type { HostsStatus } from '../../pair/host-links.ts';
import type { Pair, PairStatus } from '../../pair/pair.ts';
import type { ReleaseScope } from '../../state/release-mark.ts';
import type { AnnouncerSections, Announcers } from '../../vips/announcers.ts';
import type { ClusterWriters, WritingStatus } from '../cluster/cluster-writers.ts';
import { allClassProblems } from '../operating/class-problems.ts';
import { type FactSources, problemsOf } from '../operating/load-balancer-view.ts';
import type { LoadBalancerStatus } from '../operating/operating-status.ts';
import type { StatusBook, StatusCounts } from '../operating/status-book.ts';
import type { AmbiguousPaths, DotSegments } from './access/path-rules.ts';
import type { Proofs } from './access/proofs.ts';

export interface StatusSources {
  readonly version: string;
  readonly startedAt: Date;
  readonly cluster: Cluster;
  readonly desired: DesiredState;
  readonly dataplane: DataplaneFacts & Meter;
  readonly operating: StatusBook;
  readonly announcers: Announcers;
  /** See FactSources. */
  readonly reach: FactSources['reach'];
  /** undefined if this host has no peer. */
  readonly pair: Pair | undefined;
  /** The host as one of several by BGP; its hosts are undefined if the settings do not name them. */
  readonly bgpHost: Pick<BgpHost, 'hosts' | 'announcements'> | undefined;
  /** Its status is undefined if connections are not synchronised. */
  readonly connectionSync: { status(): ConnectionSyncStatus | undefined };
  readonly egress: EgressFacts;
  readonly addresses: AddressKeeper;
  /** undefined without a cluster. */
  readonly api: () => ApiStatus | undefined;
  /** See lostSince(). */
  readonly clusterLostSince: () => number;
  /** What an operator has released. */
  readonly released: () => ReleaseScope;
  /** undefined without a cluster. */
  readonly writing: () => WritingStatus | undefined;
  /** Problems of the sources: unreadable files, duplicate objects. */
  readonly sourceProblems: () => readonly Problem[];
  /** The manifests that have the object (`Service default/web`). */
  readonly pathsOf: (identity: string) => readonly string[];
  /** The state on disk: the folder, and what this agent writes in it. */
  readonly disk: () => DiskState;
  readonly zone: () => string;
  readonly dotSegments: () => DotSegments;
  readonly ambiguousPaths: () => AmbiguousPaths;
  readonly proofs: Proofs;
  /** The member of a pool of routes whose clients have this value of its cookie; undefined if none has. */
  readonly stickyMember: (pool: Listener, cookie: string) => Member | undefined;
  /** '' for none. */
  readonly dashboardUrl: () => string;
}

/** What the agent writes for the next agent, or for a reboot. */
export interface DiskState {
  readonly folder: string;
  readonly files: readonly DiskFile[];
}

/** The status of the connection to the API server. */
export interface ApiStatus {
  /** All objects have been read since the start. */
  readonly isSynced: boolean;
  /** Why the last request failed, '' if it did not; the objects read before count in the meantime. */
  readonly fault: string;
  /** The last time that it has sent anything to the agent's watches, milliseconds since the epoch; 0: never yet. */
  readonly lastAnswer: number;
}

/** With a section for each announcer. */
export interface AgentStatus extends AnnouncerSections {
  readonly version: string;
  readonly startedAt: string;
  readonly api:
    | {
        readonly synced: boolean;
        readonly fault: string;
        /** ISO 8601; '' before the first. A watch may be silent for a minute. */
        readonly lastAnswer: string;
        /** Since when the cluster may be gone, ISO 8601; '' if it answers, or has for long enough. */
        readonly lostSince: string;
      }
    | undefined;
  /** What an operator has released, which is not served; undefined if nothing is. */
  readonly released: ReleaseScope | undefined;
  /** What this agent writes to the cluster. */
  readonly writing: WritingStatus | undefined;
  readonly objects: Readonly<Record<string, number>>;
  /** Without pools. */
  readonly loadBalancers: number;
  /** How many pools of Services routes send to. */
  readonly pools: number;
  /** Services that are neither served themselves nor behind routes. */
  readonly ignoredServices: number;
  /** Listeners of clients, without those of pools. */
  readonly listeners: number;
  /** Also those of pools. */
  readonly members: number;
  readonly operating: {
    readonly counts: StatusCounts;
    /** Load balancers in ERROR, OFFLINE or DEGRADED. */
    readonly unwell: readonly LoadBalancerStatus[];
  };
  readonly haproxy: DataplaneStatus;
  readonly disk: DiskState;
  readonly pair: PairStatus | undefined;
  /** Every host of the setting `hosts`; undefined without it. */
  readonly hosts: HostsStatus | undefined;
  readonly connectionSync: ConnectionSyncStatus | undefined;
  /** undefined if no Service asks for it. */
  readonly egress: EgressStatus | undefined;
  readonly addresses: AddressStatus;
  readonly problems: readonly Problem[];
  /** '' for none. */
  readonly fault: string;
}

export function agentStatus(sources: StatusSources): AgentStatus {
  const { version, startedAt, cluster, desired, dataplane, addresses } = sources;
  const pair = sources.pair?.status();
  const hosts = sources.bgpHost?.hosts();
  const connectionSync = sources.connectionSync.status();
  const egress = sources.egress.status();
  const listeners = [...desired.loadBalancers.values()].flatMap((each) => each.listeners);
  const haproxy = dataplane.status();
  const pools = [...desired.loadBalancers.keys()].filter((key) => ownerOf(key).kind === 'Pool');
  const behindRoutes = new Set(
    pools.map((key) => serviceOfPool(key).service).filter((key) => desired.ignored.has(key)),
  ).size;
  const api = sources.api();
  const released = sources.released();
  return {
    version,
    startedAt: startedAt.toISOString(),
    api: api && {
      synced: api.isSynced,
      fault: api.fault,
      lastAnswer: timeOf(api.lastAnswer),
      lostSince: timeOf(sources.clusterLostSince()),
    },
    released: released.all || released.namespaces.length > 0 ? released : undefined,
    writing: sources.writing(),
    objects: cluster.counts(),
    loadBalancers: desired.loadBalancers.size - pools.length,
    pools: pools.length,
    ignoredServices: desired.ignored.size - behindRoutes,
    listeners: listeners.filter(({ reachedBy }) => reachedBy === 'clients').length,
    members: listeners.reduce((sum, { pool }) => sum + pool.members.length, 0),
    operating: { counts: countsWithoutPools(sources.operating), unwell: sources.operating.unwell() },
    haproxy,
    disk: sources.disk(),
    ...sources.announcers.sections(),
    pair,
    hosts,
    connectionSync,
    egress,
    addresses: addresses.status(),
    problems: allProblems(sources),
    fault:
      [
        haproxy.fault,
        haproxy.persistFault,
        haproxy.unserved,
        sources.announcers.fault,
        pair?.fault,
        hosts?.fault,
        connectionSync?.fault,
        egress?.fault,
      ].find(Boolean) ?? '',
  };
}

/** A pool of routes is a part of the load balancers that send to it; its members are members. */
export function countsWithoutPools(operating: StatusBook): StatusCounts {
  const loadBalancers = { ...operating.counts.load_balancer };
  for (const { key, status } of operating.all()) if (ownerOf(key).kind === 'Pool') loadBalancers[status]--;
  return { ...operating.counts, load_balancer: loadBalancers };
}

export interface StateSources {
  readonly known: StatusSources;
  readonly certificates: { expiries(): AgentState['certificates'] };
  readonly changes: Changes;
  readonly sources: { readonly api: ApiSource | undefined };
  /** undefined without a cluster. */
  readonly writers: ClusterWriters | undefined;
}

/** For the metrics, at each scrape. */
export function agentState({ known, certificates, changes, sources, writers }: StateSources): AgentState {
  const { cluster, desired, dataplane, operating, announcers, pair, bgpHost, connectionSync, addresses } =
    known;
  return {
    objects: cluster.counts(),
    loadBalancers: desired.loadBalancers.size,
    ignoredServices: desired.ignored.size,
    certificates: certificates.expiries(),
    waiting: changes.waiting,
    problems: countsByReason(allProblems(known)),
    haproxy: dataplane.status(),
    operating: operating.counts,
    api: writers && {
      ...writers.leadership(),
      watches: sources.api?.status() ?? [],
      isLost: known.clusterLostSince() > 0,
    },
    ...announcers.sections(),
    pair: pair?.status(),
    hosts: bgpHost?.hosts(),
    connectionSync: connectionSync.status(),
    addresses: addresses.status(),
  };
}

function countsByReason(problems: readonly Problem[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { reason } of problems) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return counts;
}

/** All problems that an operator or the author of an object has to solve. */
function allProblems(sources: StatusSources): readonly Problem[] {
  const { desired, operating, addresses, announcers, pair, sourceProblems } = sources;
  return [
    ...sourceProblems(),
    ...addresses.problems,
    ...(pair?.problems() ?? []),
    ...announcers.problems(),
    ...operating.unwell().flatMap(({ problems }) => problems),
    ...allClassProblems(desired.statuses),
    ...[...desired.loadBalancers.values()].flatMap((each) => problemsOf(each, sources, [])),
  ];
}

/** ISO 8601; '' for 0. */
function timeOf(milliseconds: number): string {
  return milliseconds === 0 ? '' : new Date(milliseconds).toISOString();
}
