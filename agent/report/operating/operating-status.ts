// The operating status of load balancers, listeners, pools and members, from the state of the dataplane and from what clients
// met in the last minute. Pure.
// The statuses and their sums are those of Octavia's health manager (health_drivers/update_db.py), with two exceptions: a
// listener has the status of its only pool, and a pool without ready members is OFFLINE. A listener with routes has no pool
// of its own: it is ONLINE if it is served, and the pools of the routes are load balancers of their own.
// Why: docs/design/decisions/0046-one-verdict.md

import type { DataplaneFacts, MemberFact } from '../../dataplane/forwarder.ts';
import { failuresInWords, type RecentFailures } from '../../dataplane/recent-failures.ts';
import type { Listener, LoadBalancer, Member, Problem } from '../../model/load-balancer.ts';
import { listenerInWords, objectOf } from '../../model/names.ts';
import type { OperatingStatus } from '../../model/operating-status.ts';
import { isReachable, type Reach } from './reachable.ts';

export interface MemberStatus {
  readonly name: string;
  readonly status: OperatingStatus;
  /** Why it is in ERROR, or what of its traffic failed; '' for nothing. */
  readonly cause: string;
  /** All that clients tried at it failed. */
  readonly fails: boolean;
}

/** The status of a listener and of its pool. */
export interface ListenerStatus {
  readonly name: string;
  readonly status: OperatingStatus;
  readonly pool: OperatingStatus;
  /** Ready members, how many of them fail their checks, and how many others all that clients tried. */
  readonly ready: number;
  readonly down: number;
  readonly failing: number;
  /** Members that take new connections. */
  readonly taking: number;
  /** How much of what clients tried in the last minute failed. */
  readonly fails: RecentFailures['share'];
  /** A StatusBook leaves them out if all are well, or OFFLINE with the listener, in a load balancer without a fault. */
  readonly members: readonly MemberStatus[];
}

export interface LoadBalancerStatus {
  readonly key: string;
  readonly status: OperatingStatus;
  readonly listeners: readonly ListenerStatus[];
  /** Pools whose ready members all fail their checks, or that fail clients. */
  readonly problems: readonly Problem[];
  /** One of its pools has a health monitor. */
  readonly isMonitored: boolean;
}

export type HealthFacts = Pick<DataplaneFacts, 'serves' | 'members' | 'failures'>;

/** A listener that no client reaches by this host is OFFLINE, as one that is not served. */
export function operatingStatus(
  loadBalancer: LoadBalancer,
  facts: HealthFacts,
  reach?: Reach,
): LoadBalancerStatus {
  const { key } = loadBalancer;
  const listeners = loadBalancer.listeners.map((listener) =>
    listenerStatus(listener, facts, isReachable(loadBalancer, listener, reach)),
  );
  const problems = loadBalancer.listeners.flatMap((listener, at) => {
    const status = listeners[at];
    if (status === undefined) return [];
    if (status.ready > 0 && status.down === status.ready) return [allDown(key, listener, status.ready)];
    return failing(key, listener, status);
  });
  const isMonitored = loadBalancer.listeners.some(({ pool }) => pool.monitor !== undefined);
  return { key, status: ofAll(listeners), listeners, problems, isMonitored };
}

function listenerStatus(listener: Listener, facts: HealthFacts, isReached: boolean): ListenerStatus {
  const { name, pool, routing } = listener;
  const known = facts.members(name);
  const failures = facts.failures(name);
  const members = pool.members.map((member) =>
    memberStatus(listener, member, known.get(member.name), failures),
  );
  const ready = members.filter((_, at) => pool.members[at]?.state === 'ready');
  const failing = ready.filter(({ fails }) => fails).length;
  const down = ready.filter(({ status }) => status === 'ERROR').length - failing;
  const taking = members.filter(takesConnections).length;
  const counts = { ready: ready.length, down, failing, taking, fails: failures?.share ?? ('none' as const) };
  // Each pool of a listener with routes is a load balancer of its own.
  const own = routing === undefined ? poolStatus(members, counts) : routedStatus(counts);
  const status = isReached && facts.serves(name) ? own : 'OFFLINE';
  return { name, status, pool: own, ...counts, members };
}

function memberStatus(
  { pool }: Listener,
  { name, state }: Member,
  fact: MemberFact | undefined,
  failures: RecentFailures | undefined,
): MemberStatus {
  const own = failures?.members.get(name);
  const traffic = own === undefined || own.failed === 0 ? '' : failuresInWords(own);
  const is = (status: OperatingStatus, cause = traffic, fails = false): MemberStatus => ({
    ...{ name, status, cause, fails },
  });
  if (fact === undefined || fact.state === 'maint' || fact.state === 'gone') return is('OFFLINE');
  const canBeDown = pool.monitor !== undefined || pool.ejection !== undefined;
  if (canBeDown && fact.isDown === true) return is('ERROR', fact.cause);
  if (state === 'drain' || fact.state === 'drain') return is('DRAINING');
  if (own?.isAll) return is('ERROR', traffic, true);
  // HAProxy treats a member as up until its check has failed.
  return is(pool.monitor === undefined ? 'NO_MONITOR' : 'ONLINE');
}

/** As far as is known. */
export function takesConnections({ status }: Pick<MemberStatus, 'status'>): boolean {
  return status === 'ONLINE' || status === 'NO_MONITOR';
}

type Counts = Pick<ListenerStatus, 'ready' | 'down' | 'failing' | 'fails'>;

function poolStatus(
  members: readonly MemberStatus[],
  { ready, down, failing, fails }: Counts,
): OperatingStatus {
  if (ready === 0) return members.some(({ status }) => status === 'DRAINING') ? 'DRAINING' : 'OFFLINE';
  if (down + failing === ready || fails === 'all') return 'ERROR';
  if (down + failing > 0 || fails === 'some') return 'DEGRADED';
  return members.every(({ status }) => status === 'OFFLINE') ? 'OFFLINE' : 'ONLINE';
}

function routedStatus({ fails }: Counts): OperatingStatus {
  if (fails === 'all') return 'ERROR';
  return fails === 'some' ? 'DEGRADED' : 'ONLINE';
}

/** As Octavia: ERROR if a pool has no member left, DEGRADED if one of several is missing. */
function ofAll(listeners: readonly ListenerStatus[]): OperatingStatus {
  const has = (status: OperatingStatus): boolean => listeners.some((each) => each.status === status);
  if (has('ERROR')) return 'ERROR';
  if (has('DEGRADED')) return 'DEGRADED';
  const [first] = listeners;
  if (first === undefined) return 'OFFLINE';
  return listeners.every(({ status }) => status === first.status) ? first.status : 'DEGRADED';
}

const FAILING_CLIENTS = [
  ['some', 'a part of what clients send'],
  ['all', 'what clients send'],
] as const;

/** What is wrong with a load balancer, as a part of a sentence. */
export function listenersInWords(
  listeners: readonly Pick<ListenerStatus, 'status' | 'ready' | 'down' | 'failing' | 'fails'>[],
): string {
  const [ready, down] = [sum(listeners.map((each) => each.ready)), sum(listeners.map((each) => each.down))];
  const failing = sum(listeners.map((each) => each.failing));
  const words = (['OFFLINE', 'DRAINING'] as const).flatMap((status) => {
    const count = listeners.filter((each) => each.status === status).length;
    return count === 0 ? [] : [`${partOf(count, listeners.length, 'listener')} ${status}`];
  });
  // Only the pools of the routes know the members of a listener with routes.
  for (const [fails, what] of FAILING_CLIENTS) {
    const count = listeners.filter((each) => each.fails === fails && each.failing === 0).length;
    if (count > 0)
      words.unshift(`${partOf(count, listeners.length, 'listener')} ${fail(listeners.length)} ${what}`);
  }
  if (failing > 0)
    words.unshift(`${partOf(failing, ready, 'ready member')} ${fail(ready)} what clients send`);
  if (down > 0 || words.length === 0)
    words.unshift(
      ready === 1 && down === 1
        ? 'the only ready member fails its health check'
        : `${down} of ${ready} ready members fail their health checks`,
    );
  return words.join(', ');
}

/** `2 of 3 listeners`, or `the only listener`. */
function partOf(count: number, all: number, noun: string): string {
  return all === 1 ? `the only ${noun}` : `${count} of ${all} ${noun}s`;
}

function fail(all: number): string {
  return all === 1 ? 'fails' : 'fail';
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function allDown(key: string, listener: Listener, ready: number): Problem {
  const { protocol, port, pool } = listener;
  const who = ready === 1 ? 'The only ready member' : `Each of the ${ready} ready members`;
  const what =
    pool.whenAllDown === 'serve'
      ? 'connections go to all of them as if they were up'
      : 'new connections are refused';
  return {
    object: objectOf(key),
    reason: 'AllMembersDown',
    message: `${who} of ${listenerInWords(listener)} fails its health check: ${what}`,
    port: { protocol, port },
  };
}

/** Members in one sentence; the others are counted. */
const MAX_NAMED = 3;

/** Without numbers, which change all the time, and without more names than it needs: the members have them. */
function failing(
  key: string,
  listener: Listener,
  { ready, fails, members }: ListenerStatus,
): readonly Problem[] {
  const { protocol, port: number, routing } = listener;
  // Without a ready member there is nobody to fail.
  if (routing === undefined && ready === 0) return [];
  const dead = members.filter((member) => member.fails).map(({ name }) => name);
  const port = listenerInWords(listener);
  const words = routing === undefined ? failureOfPool(port, fails, dead) : failureOfRoutes(port, fails);
  if (words === '') return [];
  return [{ object: objectOf(key), reason: 'MembersFail', message: words, port: { protocol, port: number } }];
}

function failureOfRoutes(port: string, fails: ListenerStatus['fails']): string {
  if (fails === 'none') return '';
  return `${fails === 'all' ? 'Each answer' : 'A part of the answers'} of ${port} in the last minute was 5xx`;
}

function failureOfPool(port: string, fails: ListenerStatus['fails'], dead: readonly string[]): string {
  if (fails === 'all') return `All that clients tried at ${port} in the last minute failed`;
  if (fails === 'some') return `A part of what clients tried at ${port} in the last minute failed`;
  if (dead.length === 0) return '';
  const which = `${firstOf(dead)} ${dead.length === 1 ? 'fails' : 'fail'} each time`;
  return `Clients get an answer at ${port} only because other members take over: ${which}`;
}

/** The message of the problem that everything fails, of which `A part ...` is the end; '' if the message is another one. */
export function wholeFailure(message: string): string {
  if (!message.startsWith('A part of ')) return '';
  return message
    .replace(/^A part of what clients/, 'All that clients')
    .replace(/^A part of the answers/, 'Each answer');
}

function firstOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
