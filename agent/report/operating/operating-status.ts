// The operating status of load balancers, listeners, pools and members, from the state of the dataplane. Pure.
// The statuses and their sums are those of Octavia's health manager (health_drivers/update_db.py), with two exceptions: a
// listener has the status of its only pool, and a pool without ready members is OFFLINE. A listener with routes has no pool
// of its own: it is ONLINE if it is served, and the pools of the routes are load balancers of their own.

import type { DataplaneFacts, MemberFact } from '../../dataplane/dataplane.ts';
import type { Listener, LoadBalancer, Member, Problem } from '../../model/load-balancer.ts';
import { listenerInWords, objectOf } from '../../model/names.ts';
import type { OperatingStatus } from '../../model/operating-status.ts';

export interface MemberStatus {
  readonly name: string;
  readonly status: OperatingStatus;
  /** Why it is in ERROR. */
  readonly cause: string;
}

/** Of a listener and of its pool. */
export interface ListenerStatus {
  readonly name: string;
  readonly status: OperatingStatus;
  readonly pool: OperatingStatus;
  /** Ready members, and how many of them fail their checks. */
  readonly ready: number;
  readonly down: number;
  /** A StatusBook leaves them out if all are well, or OFFLINE with the listener, in a load balancer without a fault. */
  readonly members: readonly MemberStatus[];
}

export interface LoadBalancerStatus {
  readonly key: string;
  readonly status: OperatingStatus;
  readonly listeners: readonly ListenerStatus[];
  /** Pools whose ready members all fail their checks. */
  readonly problems: readonly Problem[];
  /** One of its pools has a health monitor. */
  readonly isMonitored: boolean;
}

export type HealthFacts = Pick<DataplaneFacts, 'serves' | 'members'>;

export function operatingStatus(loadBalancer: LoadBalancer, facts: HealthFacts): LoadBalancerStatus {
  const { key } = loadBalancer;
  const listeners = loadBalancer.listeners.map((listener) => listenerStatus(listener, facts));
  const problems = loadBalancer.listeners.flatMap((listener, at) => {
    const { pool, ready = 0 } = listeners[at] ?? {};
    return pool === 'ERROR' ? [allDown(key, listener, ready)] : [];
  });
  const isMonitored = loadBalancer.listeners.some(({ pool }) => pool.monitor !== undefined);
  return { key, status: ofAll(listeners), listeners, problems, isMonitored };
}

function listenerStatus(listener: Listener, facts: HealthFacts): ListenerStatus {
  const { name, pool, routing } = listener;
  const known = facts.members(name);
  const members = pool.members.map((member) => memberStatus(listener, member, known.get(member.name)));
  const ready = members.filter((_, at) => pool.members[at]?.state === 'ready');
  const down = ready.filter(({ status }) => status === 'ERROR').length;
  // Of a listener with routes each pool is a load balancer of its own.
  const own = routing === undefined ? poolStatus(members, ready.length, down) : 'ONLINE';
  const status = facts.serves(name) ? own : 'OFFLINE';
  return { name, status, pool: own, ready: ready.length, down, members };
}

function memberStatus(
  { pool }: Listener,
  { name, state }: Member,
  fact: MemberFact | undefined,
): MemberStatus {
  const is = (status: OperatingStatus, cause = ''): MemberStatus => ({ name, status, cause });
  if (fact === undefined || fact.state === 'maint' || fact.state === 'gone') return is('OFFLINE');
  if (pool.monitor !== undefined && fact.isDown === true) return is('ERROR', fact.cause);
  if (state === 'drain' || fact.state === 'drain') return is('DRAINING');
  // HAProxy treats a member as up until its check has failed.
  return is(pool.monitor === undefined ? 'NO_MONITOR' : 'ONLINE');
}

function poolStatus(members: readonly MemberStatus[], ready: number, down: number): OperatingStatus {
  if (ready === 0) return members.some(({ status }) => status === 'DRAINING') ? 'DRAINING' : 'OFFLINE';
  if (down === ready) return 'ERROR';
  if (down > 0) return 'DEGRADED';
  return members.every(({ status }) => status === 'OFFLINE') ? 'OFFLINE' : 'ONLINE';
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

/** What is wrong with a load balancer, as a part of a sentence. */
export function listenersInWords(
  listeners: readonly Pick<ListenerStatus, 'status' | 'ready' | 'down'>[],
): string {
  const [ready, down] = [sum(listeners.map((each) => each.ready)), sum(listeners.map((each) => each.down))];
  const words = (['OFFLINE', 'DRAINING'] as const).flatMap((status) => {
    const count = listeners.filter((each) => each.status === status).length;
    return count === 0 ? [] : [`${count} of ${listeners.length} listeners ${status}`];
  });
  if (down > 0 || words.length === 0)
    words.unshift(`${down} of ${ready} ready members fail their health checks`);
  return words.join(', ');
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
