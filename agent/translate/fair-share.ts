// Leaves out of a load balancer what exceeds its share of what its namespace may have in HAProxy and the kernel, so that no
// author takes their memory and descriptors from the others. Pure.

import type { NamespaceShares } from '../model/desired-state.ts';
import type { Ignored, Listener, LoadBalancer, Member, Problem } from '../model/load-balancer.ts';
import { objectOf } from '../model/names.ts';

/** A listener takes as much memory as this many servers on each of its addresses. */
const SERVERS_PER_ADDRESS = 5;
/** So many source ranges of a listener take as much memory, and time at a reload, as one server. */
const RANGES_PER_SERVER = 4;

/** A certificate of a listener takes as much memory as this many servers. */
const SERVERS_PER_CERTIFICATE = 5;

interface Needs {
  readonly servers: number;
  /** Descriptors: of a socket for each address of a port, and of the members' checks. */
  readonly checks: number;
}

/** Nothing for an owner that is not served. */
export function needsOf(result: LoadBalancer | Ignored | undefined): Needs {
  let servers = 0;
  let checks = 0;
  for (const listener of result?.kind === 'LoadBalancer' ? result.listeners.filter(isServed) : []) {
    const { engine, addresses, pool } = listener;
    servers += withoutMembers(listener) + pool.members.length;
    if (engine === 'haproxy') checks += addresses.length;
    if (pool.monitor !== undefined) checks += pool.members.length;
  }
  return { servers, checks };
}

/** What a listener takes as servers, besides its members. */
function withoutMembers({ addresses, allowedCidrs, tls, pool: { clients = [] } }: Listener): number {
  const certificates = tls?.certificates.length ?? 0;
  return (
    addresses.length * SERVERS_PER_ADDRESS +
    certificates * SERVERS_PER_CERTIFICATE +
    Math.floor((allowedCidrs.length + clients.length) / RANGES_PER_SERVER)
  );
}

/**
 * Returns the load balancer itself if it is within its shares. Else at most half of its servers are listeners, the first
 * ones of its owner, and each of them has the same number of members: ready ones first, then by id. A share that is too small
 * for one listener serves none.
 */
export function withinShares(loadBalancer: LoadBalancer, shares: NamespaceShares): LoadBalancer {
  const { namespace } = loadBalancer;
  const needs = needsOf(loadBalancer);
  const servers = shares.servers.of(namespace);
  const checks = shares.checks.of(namespace);
  if (needs.servers <= servers && needs.checks <= checks) return loadBalancer;
  const served = loadBalancer.listeners.filter(isServed);
  const ofPort = Math.max(...served.map(withoutMembers));
  const sockets = Math.max(...served.map(({ addresses }) => addresses.length));
  const kept = new Set(served.slice(0, Math.min(portsOf(servers, ofPort), portsOf(checks, sockets))));
  const most = Math.max(0, Math.floor(servers / kept.size) - ofPort);
  const mostChecked = Math.min(most, Math.max(0, Math.floor(checks / kept.size) - sockets));
  const listeners = loadBalancer.listeners.flatMap((listener) => {
    if (!isServed(listener)) return [listener];
    if (!kept.has(listener)) return listener.reachedBy === 'routes' ? [] : [{ ...listener, addresses: [] }];
    return withMembers(listener, listener.pool.monitor === undefined ? most : mostChecked);
  });
  const problem: Problem = {
    object: objectOf(loadBalancer.key),
    reason: 'ShareExceeded',
    message:
      needs.servers > servers
        ? `Cannot serve all of its ports and members: namespace "${namespace}" may have ${shares.servers.bound()} servers (setting maxServersPerNamespace), of which the share of one Service is ${servers}, and a port with its addresses and source ranges counts as ${ofPort}; use fewer ports, endpoints or source ranges`
        : `Cannot serve all of its ports and members: namespace "${namespace}" may have ${shares.checks.bound()} sockets and health checks (setting maxChecksPerNamespace), of which the share of one Service is ${checks}; use fewer ports or endpoints, or no health monitor`,
  };
  return { ...loadBalancer, listeners, problems: [...loadBalancer.problems, problem] };
}

/** How many ports take at most half of a share, and at least one if it is within the share. */
function portsOf(share: number, ofPort: number): number {
  return ofPort > share ? 0 : Math.max(1, Math.floor(share / (2 * ofPort)));
}

function isServed({ addresses, reachedBy }: Listener): boolean {
  return addresses.length > 0 || reachedBy === 'routes';
}

function withMembers(listener: Listener, most: number): Listener {
  const { pool } = listener;
  if (pool.members.length <= most) return listener;
  const chosen = new Set([...pool.members].sort(byPrecedence).slice(0, most));
  return { ...listener, pool: { ...pool, members: pool.members.filter((member) => chosen.has(member)) } };
}

function byPrecedence(a: Member, b: Member): number {
  if (a.state !== b.state) return a.state === 'ready' ? -1 : 1;
  return a.id - b.id;
}
