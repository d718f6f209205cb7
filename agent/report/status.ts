// What the agent knows, as plain data for `status` and `why`: the whole in numbers, one Service in detail.
// Reads the model, the cluster and the dataplane; changes nothing.

import {
  type LoadBalancerStatus,
  type OperatingStatus,
  operatingStatus,
} from '../../health/operating-status.ts';
import type { StatusBook, StatusCounts } from '../../health/status-book.ts';
import type { AddressKeeper, AddressStatus } from '../address-keeper/address-keeper.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { HaproxyStatus } from '../haproxy/options.ts';
import type { RunningServer } from '../haproxy/running.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Listener, LoadBalancer, Member, Problem } from '../model/load-balancer.ts';
import type { Pair, PairStatus } from '../pair/pair.ts';
import { selectEndpoints } from '../translate/service/select-endpoints.ts';
import type { Model } from '../translate/translate.ts';
import type { KeepalivedDataplane } from '../vips/keepalived/dataplane.ts';
import type { VrrpStatus } from '../vips/keepalived/vrrp.ts';
import { dataplaneProblems } from './dataplane-problems.ts';
import { dataplaneFacts } from './operating.ts';
import type { WritingStatus } from './reporter.ts';

export interface StatusSources {
  readonly version: string;
  readonly startedAt: Date;
  readonly cluster: Cluster;
  readonly model: Model;
  readonly haproxy: HaproxyDataplane;
  readonly operating: StatusBook;
  /** undefined where this host has no VRRP. */
  readonly keepalived: KeepalivedDataplane | undefined;
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
  readonly haproxy: HaproxyStatus;
  readonly vrrp: VrrpStatus | undefined;
  readonly pair: PairStatus | undefined;
  readonly addresses: AddressStatus;
  readonly problems: readonly Problem[];
  /** '' where everything is as it should be. */
  readonly fault: string;
}

export function agentStatus(sources: StatusSources): AgentStatus {
  const { version, startedAt, cluster, model, haproxy, addresses } = sources;
  const vrrp = sources.keepalived?.status();
  const pair = sources.pair?.status();
  const listeners = [...model.loadBalancers.values()].flatMap((each) => each.listeners);
  const haproxyStatus = haproxy.status();
  const api = sources.api();
  return {
    version,
    startedAt: startedAt.toISOString(),
    api: api && { synced: api.isSynced, fault: api.fault },
    writing: sources.writing(),
    objects: cluster.counts(),
    loadBalancers: model.loadBalancers.size,
    ignoredServices: model.ignored.size,
    listeners: listeners.length,
    members: listeners.reduce((sum, { pool }) => sum + pool.members.length, 0),
    operating: { counts: sources.operating.counts, unwell: sources.operating.unwell() },
    haproxy: haproxyStatus,
    vrrp,
    pair,
    addresses: addresses.status(),
    problems: allProblems(sources),
    fault: [haproxyStatus.fault, haproxyStatus.persistFault, vrrp?.fault, pair?.fault].find(Boolean) ?? '',
  };
}

/** Every problem that somebody has to mend. */
export function allProblems(sources: StatusSources): readonly Problem[] {
  const { model, operating, addresses, pair, sourceProblems } = sources;
  return [
    ...sourceProblems(),
    ...addresses.problems,
    ...(pair?.problems() ?? []),
    ...operating.unwell().flatMap(({ problems }) => problems),
    ...[...model.loadBalancers.values()].flatMap((each) => [
      ...each.problems,
      ...dataplaneProblems(each, sources),
    ]),
  ];
}

export interface ServiceExplanation {
  readonly key: string;
  /** `not found`, `not ours`, `served`, `served in part`, `not served`. */
  readonly verdict: 'not found' | 'not ours' | 'served' | 'served in part' | 'not served';
  /** In Octavia's words; undefined where it is not ours. */
  readonly status: OperatingStatus | undefined;
  /** For people: what is the matter, most important first. */
  readonly reasons: readonly string[];
  readonly addresses: readonly string[];
  readonly listeners: readonly ListenerExplanation[];
  readonly problems: readonly Problem[];
}

export interface ListenerExplanation {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly protocol: string;
  readonly port: number;
  readonly status: OperatingStatus;
  readonly pool: OperatingStatus;
  readonly members: readonly {
    readonly name: string;
    readonly target: string;
    readonly state: string;
    /** What HAProxy has acknowledged: ready, drain, maint, or missing. */
    readonly haproxy: string;
    readonly status: OperatingStatus;
    /** What its check has found, where it fails; otherwise ''. */
    readonly cause: string;
  }[];
  /** Endpoints that are neither ready nor serving, and so no members. */
  readonly notReady: number;
}

/** `key` is `namespace/name`. */
export function explainService(key: string, sources: StatusSources): ServiceExplanation {
  const { model, cluster, haproxy } = sources;
  const empty = { key, status: undefined, addresses: [], listeners: [], problems: [] };
  const ignored = model.ignored.get(key);
  if (ignored !== undefined) return { ...empty, verdict: 'not ours', reasons: [ignored.reason] };
  const loadBalancer = model.loadBalancers.get(key);
  if (loadBalancer === undefined) {
    const reason =
      cluster.service(key) === undefined ? `There is no Service "${key}"` : 'It has not been looked at yet';
    const about = sources.sourceProblems().filter(({ message }) => message.includes(key));
    return {
      ...empty,
      verdict: 'not found',
      reasons: [reason, ...unseen(sources.api()), ...about.map(({ message }) => message)],
      problems: about,
    };
  }
  const now = operatingStatus(loadBalancer, dataplaneFacts(haproxy));
  const problems = [...loadBalancer.problems, ...dataplaneProblems(loadBalancer, sources), ...now.problems];
  const listeners = loadBalancer.listeners.map((listener) =>
    explainListener(loadBalancer, listener, now, sources),
  );
  const refuses = new Set(
    loadBalancer.listeners.filter(({ pool }) => pool.whenAllDown === 'reject').map(({ name }) => name),
  );
  const served = listeners.filter(
    ({ name, members, pool }) =>
      haproxy.serves(name) && members.some(isUp) && !(pool === 'ERROR' && refuses.has(name)),
  );
  const reasons = [
    ...problems.map(({ message }) => message),
    ...listeners.filter(({ members }) => !members.some(isUp)).map(withoutMembers),
    ...listeners
      .filter(({ name }) => !haproxy.serves(name))
      .map(({ name }) => `HAProxy does not serve ${name} (yet)`),
  ];
  const verdict =
    served.length === 0 ? 'not served' : served.length < listeners.length ? 'served in part' : 'served';
  const addresses = loadBalancer.vips.map(({ address }) => address);
  return { key, verdict, status: now.status, reasons, addresses, listeners, problems };
}

/** Why there may be more than is known of. */
function unseen(api: ApiStatus | undefined): readonly string[] {
  if (api === undefined || (api.isSynced && api.fault === '')) return [];
  const since = api.isSynced ? 'cannot be asked now' : 'has not been read yet';
  return [`The API server ${since}${api.fault === '' ? '' : `: ${api.fault}`}`];
}

/** Whether HAProxy serves any listener of this load balancer. */
export function isServed(key: string, { model, haproxy }: Pick<StatusSources, 'model' | 'haproxy'>): boolean {
  return model.loadBalancers.get(key)?.listeners.some(({ name }) => haproxy.serves(name)) === true;
}

function isUp(member: ListenerExplanation['members'][number]): boolean {
  return member.haproxy === 'ready';
}

function withoutMembers({ name, members, notReady }: ListenerExplanation): string {
  if (members.length > 0) return `No member of ${name} takes connections`;
  if (notReady > 0) return `${name} has no member: ${notReady} endpoints are there, none is ready`;
  return `${name} has no member: no EndpointSlice gives it an endpoint`;
}

/** One that drained already when HAProxy started has weight 0 from its file, which is the same. */
function stateOf({ state }: Member, running: RunningServer | undefined): RunningServer['state'] | 'missing' {
  if (running === undefined) return 'missing';
  return state === 'drain' && running.state === 'ready' && running.weight === 0 ? 'drain' : running.state;
}

function explainListener(
  loadBalancer: LoadBalancer,
  { name, addresses, protocol, port, portName, family, pool }: Listener,
  now: LoadBalancerStatus,
  { cluster, haproxy, zone }: StatusSources,
): ListenerExplanation {
  const slices = cluster.slices(loadBalancer.key);
  const { notReady } = selectEndpoints(slices, { name: portName, protocol }, family, {
    zone: zone(),
    ignoreHints: true,
  });
  const running = haproxy.members(name);
  const own = now.listeners.find((each) => each.name === name);
  const statuses = new Map(own?.members.map((each) => [each.name, each]));
  const members = pool.members.map((member) => ({
    name: member.name,
    target: member.target,
    state: member.state,
    haproxy: stateOf(member, running.get(member.name)),
    status: statuses.get(member.name)?.status ?? 'OFFLINE',
    cause: statuses.get(member.name)?.cause ?? '',
  }));
  const { status = 'OFFLINE', pool: poolStatus = 'OFFLINE' } = own ?? {};
  return { name, addresses, protocol, port, status, pool: poolStatus, members, notReady };
}
