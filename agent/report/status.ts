// What the agent knows, as plain data for `status`: the whole in numbers, and all problems.
// Reads the parts of the agent; changes nothing.

import type { AddressKeeper, AddressStatus } from '../address-keeper/address-keeper.ts';
import type { Dataplane } from '../dataplane/dataplane.ts';
import type { DataplaneStatus } from '../dataplane/status.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { Pair, PairStatus } from '../pair/pair.ts';
import type { VrrpAnnouncer, VrrpStatus } from '../vips/vrrp.ts';
import type { WritingStatus } from './cluster-writers.ts';
import { problemsOf } from './load-balancer-view.ts';
import type { LoadBalancerStatus } from './operating-status.ts';
import type { StatusBook, StatusCounts } from './status-book.ts';

export interface StatusSources {
  readonly version: string;
  readonly startedAt: Date;
  readonly cluster: Cluster;
  readonly desired: DesiredState;
  readonly dataplane: Dataplane;
  readonly operating: StatusBook;
  /** undefined if this host has no VRRP. */
  readonly announcer: VrrpAnnouncer | undefined;
  /** undefined where this host has no peer. */
  readonly pair: Pair | undefined;
  readonly addresses: AddressKeeper;
  /** undefined where there is no cluster. */
  readonly api: () => ApiStatus | undefined;
  /** undefined where there is no cluster. */
  readonly writing: () => WritingStatus | undefined;
  /** Problems of the sources: files that cannot be read, objects that are given twice. */
  readonly sourceProblems: () => readonly Problem[];
  readonly zone: () => string;
}

/** How the API server is followed. */
export interface ApiStatus {
  /** All objects have been read since the start. */
  readonly isSynced: boolean;
  /** Why it could not be asked last, '' where it could: what it said before counts meanwhile. */
  readonly fault: string;
}

export interface AgentStatus {
  readonly version: string;
  readonly startedAt: string;
  readonly api: { readonly synced: boolean; readonly fault: string } | undefined;
  /** Of statuses and Events of the cluster. */
  readonly writing: WritingStatus | undefined;
  readonly objects: Readonly<Record<string, number>>;
  readonly loadBalancers: number;
  readonly ignoredServices: number;
  readonly listeners: number;
  readonly members: number;
  readonly operating: {
    readonly counts: StatusCounts;
    /** Load balancers in ERROR or DEGRADED. */
    readonly unwell: readonly LoadBalancerStatus[];
  };
  readonly haproxy: DataplaneStatus;
  readonly vrrp: VrrpStatus | undefined;
  readonly pair: PairStatus | undefined;
  readonly addresses: AddressStatus;
  readonly problems: readonly Problem[];
  /** '' where everything is as it should be. */
  readonly fault: string;
}

export function agentStatus(sources: StatusSources): AgentStatus {
  const { version, startedAt, cluster, desired, dataplane, addresses } = sources;
  const vrrp = sources.announcer?.status();
  const pair = sources.pair?.status();
  const listeners = [...desired.loadBalancers.values()].flatMap((each) => each.listeners);
  const haproxy = dataplane.status();
  const api = sources.api();
  return {
    version,
    startedAt: startedAt.toISOString(),
    api: api && { synced: api.isSynced, fault: api.fault },
    writing: sources.writing(),
    objects: cluster.counts(),
    loadBalancers: desired.loadBalancers.size,
    ignoredServices: desired.ignored.size,
    listeners: listeners.length,
    members: listeners.reduce((sum, { pool }) => sum + pool.members.length, 0),
    operating: { counts: sources.operating.counts, unwell: sources.operating.unwell() },
    haproxy,
    vrrp,
    pair,
    addresses: addresses.status(),
    problems: allProblems(sources),
    fault: [haproxy.fault, haproxy.persistFault, vrrp?.fault, pair?.fault].find(Boolean) ?? '',
  };
}

/** Every problem that somebody has to mend. */
export function allProblems(sources: StatusSources): readonly Problem[] {
  const { desired, operating, addresses, pair, sourceProblems } = sources;
  return [
    ...sourceProblems(),
    ...addresses.problems,
    ...(pair?.problems() ?? []),
    ...operating.unwell().flatMap(({ problems }) => problems),
    ...[...desired.loadBalancers.values()].flatMap((each) => problemsOf(each, sources, [])),
  ];
}
