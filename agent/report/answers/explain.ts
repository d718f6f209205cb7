// Explains one load balancer for the command `why`: whether it is served, what is wrong, and the state of each listener and
// member. Reads the parts of the agent; changes nothing.

import { isAbsolute } from 'node:path';
import type { Verdict } from '../../../health/page-model.ts';
import { nearest } from '../../base/nearest.ts';
import { quote } from '../../base/quote.ts';
import type { MemberFact } from '../../dataplane/forwarder.ts';
import { failuresInWords } from '../../dataplane/recent-failures.ts';
import type { EndpointSlice } from '../../kubernetes/objects.ts';
import type {
  Engine,
  Family,
  Listener,
  LoadBalancer,
  Member,
  OwnerKey,
  Problem,
  Protocol,
} from '../../model/load-balancer.ts';
import {
  keyOf,
  listenerInWords,
  objectInWords,
  objectOf,
  ownerOf,
  poolKey,
  serviceOfPool,
} from '../../model/names.ts';
import type { OperatingStatus } from '../../model/operating-status.ts';
import { type Selection, selectEndpoints } from '../../translate/service/select-endpoints.ts';
import { poolVerdicts, viewOf } from '../operating/load-balancer-view.ts';
import type { LoadBalancerStatus } from '../operating/operating-status.ts';
import type { ApiStatus, StatusSources } from './status.ts';
import { withoutEndpoints } from './without-endpoints.ts';

export interface ServiceExplanation {
  readonly key: string;
  readonly verdict: 'not found' | 'not ours' | Verdict;
  /** undefined if this agent does not serve it. */
  readonly status: OperatingStatus | undefined;
  /** Sentences on what is wrong, most important first. */
  readonly reasons: readonly string[];
  readonly addresses: readonly string[];
  /** Which routers have each address of this host, or why none has it, as sentences; empty without BGP. */
  readonly announced: readonly string[];
  readonly listeners: readonly ListenerExplanation[];
  readonly problems: readonly Problem[];
}

export interface ListenerExplanation {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly protocol: Protocol;
  readonly port: number;
  readonly family: Family;
  readonly engine: Engine;
  readonly status: OperatingStatus;
  readonly pool: OperatingStatus;
  readonly members: readonly {
    readonly name: string;
    readonly target: string;
    readonly state: string;
    /** The state in HAProxy: ready, drain, maint, or missing. */
    readonly haproxy: string;
    readonly status: OperatingStatus;
    /** Why its check fails, or what of its traffic does; '' if nothing does. */
    readonly cause: string;
    /** All that clients tried at it in the last minute failed. */
    readonly fails: boolean;
  }[];
  /** How many endpoints are neither ready nor serving, and so no members. */
  readonly notReady: number;
  /** Why it has no member; '' if it has one, or has routes instead. */
  readonly empty: string;
  /** How many rules of routes it has; undefined for a listener with members of its own. */
  readonly rules: number | undefined;
  /** The first routes and Ingresses that have them, sorted: `HTTPRoute default/api`. */
  readonly routes: readonly string[];
  readonly moreRoutes: number;
}

/** The most in one answer, so that a folder of broken files does not hide the other reasons. */
const MAX_SOURCE_PROBLEMS = 5;
/** The most pools of routes in one answer. */
const MAX_POOLS = 5;

/** `asked`: the key of a Service also stands for its pool behind routes, or for a Gateway of its name if there is no Service. */
export function explainService(asked: string, sources: StatusSources): ServiceExplanation {
  const { desired, cluster, dataplane } = sources;
  const key = keyOfName(asked, sources);
  const empty = { key, status: undefined, addresses: [], announced: [], listeners: [], problems: [] };
  const ignored = desired.ignored.get(key);
  if (ignored !== undefined) return { ...empty, verdict: 'not ours', reasons: [ignored.reason] };
  const loadBalancer = desired.loadBalancers.get(key);
  if (loadBalancer === undefined) {
    const reason =
      cluster.ownerObject(serviceOf(key)) === undefined
        ? `There is no ${objectInWords(key)}${nearestName(key, desired)}`
        : 'The agent has not read it yet';
    const about = [...problemsOfObjects(key, sources), ...unreadable(sources)].slice(0, MAX_SOURCE_PROBLEMS);
    return {
      ...empty,
      verdict: 'not found',
      reasons: [reason, ...unseen(sources.api()), ...about.map(({ message }) => message)],
      problems: about,
    };
  }
  const { health, problems: own, verdict } = viewOf(loadBalancer, sources);
  const listeners = loadBalancer.listeners.map((listener) =>
    explainListener(loadBalancer, listener, health, sources),
  );
  const isEmpty = listeners.some((listener) => listener.empty !== '');
  const about = new Set(problemsOfObjects(key, sources));
  if (isEmpty) for (const problem of ofMissingSlices(loadBalancer, sources)) about.add(problem);
  const problems = [...own, ...[...about].slice(0, MAX_SOURCE_PROBLEMS)];
  const { fault, persistFault } = dataplane.status();
  const unserved = listeners.filter(({ name }) => !dataplane.serves(name));
  const reasons = [
    ...own.map((problem) => inWords(problem, key)),
    ...problems.slice(own.length).map(({ message }) => message),
    ...listeners.flatMap(failuresOf),
    ...listeners.flatMap((listener) => failuresOfAll(listener, dataplane)),
    ...listeners
      .filter(({ members, rules }) => rules === undefined && !members.some(isUp))
      .map(withoutMembers),
    ...poolVerdicts(key, sources)
      .filter((each) => each.verdict !== 'served')
      .slice(0, MAX_POOLS)
      .map(({ pool, port, verdict: own }) => `${pool} port ${port}: ${own}: see "headgate why ${pool}"`),
    ...unserved.map(
      (listener) =>
        `${listener.engine === 'kernel' ? 'The kernel' : 'HAProxy'} does not serve ${listenerInWords(listener)} (yet)`,
    ),
    // What keeps a reload from coming, such as a full disk.
    ...(persistFault !== '' && unserved.some(({ engine }) => engine === 'haproxy') ? [persistFault] : []),
    // Also while all is served, such as a second HAProxy that takes a share of the connections.
    ...(fault !== '' && listeners.some(({ engine }) => engine === 'haproxy') ? [fault] : []),
  ];
  const addresses = loadBalancer.vips.map(({ address }) => address);
  const outside = loadBalancer.vips
    .filter(({ publicAddress = '' }) => publicAddress !== '')
    .map(
      ({ address, publicAddress = '' }) =>
        `Clients use ${publicAddress}, which a NAT outside translates to ${address}`,
    );
  const announced = [
    ...outside,
    ...addresses.map((each) => sources.announcers.announced(each)).filter(Boolean),
  ];
  return { key, verdict, status: health.status, reasons, addresses, announced, listeners, problems };
}

/** With the object if it is one of several that the owner is made of, such as a route of a Gateway. */
function inWords({ object, message }: Problem, key: OwnerKey): string {
  const { kind } = ownerOf(key);
  const isOfSeveral = kind === 'Gateway' || kind === 'Ingress';
  return isOfSeveral && object !== objectOf(key) ? `${object}: ${message}` : message;
}

function keyOfName(asked: OwnerKey, { desired, cluster }: StatusSources): OwnerKey {
  const { kind, ...name } = ownerOf(asked);
  const isKnown = (key: OwnerKey): boolean => desired.loadBalancers.has(key) || desired.ignored.has(key);
  const pool = poolKey(name.namespace, name.name, '');
  // A Service behind routes is no load balancer itself.
  if (kind === 'Service' && desired.ignored.has(asked) && desired.loadBalancers.has(pool)) return pool;
  if (kind !== 'Service' || isKnown(asked) || cluster.ownerObject(asked) !== undefined) return asked;
  const gateway = keyOf({ kind: 'Gateway', ...name });
  return isKnown(gateway) ? gateway : asked;
}

/** As two letters that change their places. */
const MOST_LETTERS = 2;

/** The end of a sentence: the name that may be meant, as `why` takes it; '' for none. */
function nearestName(key: OwnerKey, { loadBalancers, ignored }: StatusSources['desired']): string {
  const names = [...loadBalancers.keys(), ...ignored.keys()].filter((each) => ownerOf(each).kind !== 'Pool');
  const meant = nearest(key, names, MOST_LETTERS);
  return meant === undefined ? '' : `, the nearest is ${quote(meant)}`;
}

/** The Service of a pool; another owner itself. */
function serviceOf(key: OwnerKey): string {
  return ownerOf(key).kind === 'Pool' ? serviceOfPool(key).service : key;
}

/** The problems of the owner's own objects, and of the files that have them. */
function problemsOfObjects(key: OwnerKey, { cluster, pathsOf, sourceProblems }: StatusSources) {
  const slices = cluster.slices(serviceOf(key)).map((slice) => `EndpointSlice ${slice.key}`);
  const names = [objectOf(key), `Endpoints ${key}`, ...slices];
  const concerned = new Set([...names, ...names.flatMap(pathsOf)]);
  return sourceProblems().filter(({ object }) => concerned.has(object));
}

/** An object that the agent does not have may be in what it cannot read. */
function unreadable({ sourceProblems }: StatusSources): readonly Problem[] {
  return sourceProblems().filter(({ object, reason }) => reason === 'InvalidFile' || isAbsolute(object));
}

function ofMissingSlices({ namespace }: LoadBalancer, sources: StatusSources): readonly Problem[] {
  const refused = sources
    .sourceProblems()
    .filter(({ object }) => object.startsWith(`EndpointSlice ${namespace}/`));
  return [...refused, ...unreadable(sources)];
}

/** Why the agent may not have all objects. */
function unseen(api: ApiStatus | undefined): readonly string[] {
  if (api === undefined || (api.isSynced && api.fault === '')) return [];
  const problem = api.isSynced ? 'does not answer now' : 'has not been read yet';
  return [`The API server ${problem}${api.fault === '' ? '' : `: ${api.fault}`}`];
}

/** More members are only among the lines of their listener. */
const MAX_FAILING = 5;

/** `10.244.0.1:80: 50 of 50 connections failed in the last minute`. */
function failuresOf({ members }: ListenerExplanation): readonly string[] {
  return members
    .filter(({ fails }) => fails)
    .slice(0, MAX_FAILING)
    .map(({ name, cause }) => `${name}: ${cause}`);
}

/** The failures of all members of a listener together: the kernel does not count what each has answered. */
function failuresOfAll(
  listener: ListenerExplanation,
  dataplane: Pick<StatusSources['dataplane'], 'failures'>,
): readonly string[] {
  const failures = dataplane.failures(listener.name);
  if (failures?.unit !== 'flows' || failures.share === 'none' || failures.members.size > 0) return [];
  return [`${listenerInWords(listener)}: ${failuresInWords(failures)}`];
}

function isUp(member: ListenerExplanation['members'][number]): boolean {
  return member.haproxy === 'ready';
}

function withoutMembers({ empty, ...listener }: ListenerExplanation): string {
  const port = listenerInWords(listener);
  return empty === '' ? `No member of ${port} takes connections` : `${port} has no member: ${empty}`;
}

/** Problems that leave a port without members although there are endpoints. */
const NO_MEMBERS: readonly Problem['reason'][] = ['InvalidEndpoint', 'ShareExceeded'];

function whyEmpty(
  loadBalancer: LoadBalancer,
  listener: Listener,
  slices: readonly EndpointSlice[],
  { use, notReady }: Selection,
  { cluster, desired }: StatusSources,
): string {
  const { key, problems } = loadBalancer;
  if (listener.pool.members.length > 0 || listener.routing !== undefined) return '';
  const problem = problems.find(
    ({ reason, port }) =>
      (reason === 'NodePortMissing' || (use.length > 0 && NO_MEMBERS.includes(reason))) &&
      (port === undefined || (port.port === listener.port && port.protocol === listener.protocol)),
  );
  if (problem !== undefined) return `none can be one (${problem.reason})`;
  // With externalTrafficPolicy Local only Nodes with endpoints are members.
  const needsEndpoints =
    cluster.service(serviceOf(key))?.externalTrafficPolicy === 'Local' && use.length === 0;
  if (desired.dependents.of(['nodes']).has(key) && !needsEndpoints)
    return 'its members are Nodes, and no Node can be one';
  if (notReady > 0) return `${notReady} endpoints are there, none is ready`;
  const [, name = loadBalancer.name] = serviceOf(key).split('/');
  return withoutEndpoints({ ...loadBalancer, name }, listener, slices);
}

/** A member that drained before HAProxy started has weight 0 from the configuration, which has the same effect. */
function stateOf({ state }: Member, fact: MemberFact | undefined): MemberFact['state'] | 'missing' {
  if (fact === undefined) return 'missing';
  return state === 'drain' && fact.state === 'ready' && fact.weight === 0 ? 'drain' : fact.state;
}

function explainListener(
  loadBalancer: LoadBalancer,
  listener: Listener,
  health: LoadBalancerStatus,
  sources: StatusSources,
): ListenerExplanation {
  const { cluster, dataplane, zone } = sources;
  const { name, addresses, protocol, port, portName, family, engine, pool } = listener;
  const slices = cluster.slices(serviceOf(loadBalancer.key));
  const selection = selectEndpoints(slices, { name: portName, protocol }, family, {
    zone: zone(),
    ignoreHints: true,
  });
  const facts = dataplane.members(name);
  const own = health.listeners.find((each) => each.name === name);
  const statuses = new Map(own?.members.map((each) => [each.name, each]));
  const members = pool.members.map((member) => ({
    name: member.name,
    target: member.target,
    state: member.state,
    haproxy: stateOf(member, facts.get(member.name)),
    status: statuses.get(member.name)?.status ?? 'OFFLINE',
    cause: statuses.get(member.name)?.cause ?? '',
    fails: statuses.get(member.name)?.fails ?? false,
  }));
  const { status = 'OFFLINE', pool: poolStatus = 'OFFLINE' } = own ?? {};
  const { notReady } = selection;
  const empty = whyEmpty(loadBalancer, listener, slices, selection, sources);
  const routes = routesOf(listener);
  const counts = {
    members,
    notReady,
    empty,
    rules: rulesOf(listener),
    routes: routes.slice(0, MAX_ROUTES),
    moreRoutes: Math.max(0, routes.length - MAX_ROUTES),
  };
  return { name, addresses, protocol, port, family, engine, status, pool: poolStatus, ...counts };
}

/** The most routes of one listener in an answer. */
const MAX_ROUTES = 20;

/** Routes for HTTP; a rule that no route has, such as for what no host of an Ingress matches, has none. */
function routesOf({ routing }: Listener): readonly string[] {
  if (routing?.kind !== 'http') return [];
  const names = routing.sections.flatMap(({ hosts }) =>
    hosts.flatMap(({ entries }) => entries.map(({ rule }) => rule.route)),
  );
  return [...new Set(names)].filter(Boolean).sort();
}

/** Each rule once, whatever matches it has. */
function rulesOf({ routing }: Listener): number | undefined {
  if (routing === undefined) return undefined;
  if (routing.kind === 'tls') return routing.hosts.length;
  if (routing.kind === 'tcp') return 1;
  const names = routing.sections.flatMap(({ hosts }) =>
    hosts.flatMap(({ entries }) => entries.map(({ rule }) => rule.name)),
  );
  return new Set(names).size;
}
