// The number of connections that HAProxy may accept, from its limit of open files: a connection needs two descriptors, a
// listener and a checked member one each. HAProxy refuses to start if they do not fit.

import { asksForCertificates } from '../../model/client-guards.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { hasSection, isForHaproxy, reportsErrors } from './listener-config.ts';

/** Sockets, pipes, log, peers, and a margin for idle server connections. */
const OWN_DESCRIPTORS = 500;
/** HAProxy reserves memory for each descriptor, used or not. */
const MAX_CONNECTIONS = 200_000;
const MIN_CONNECTIONS = 100;

export interface Needs {
  readonly listeners: number;
  readonly checks: number;
  /** A listener has mode http. */
  readonly hasHttp: boolean;
  /** A listener ends TLS. */
  readonly hasTls: boolean;
  /** A listener asks its clients for certificates. */
  readonly asksForCertificates: boolean;
  /** A listener has routes. */
  readonly hasRoutes: boolean;
  /** A listener's routes ask authorization servers, or default backends for pages of errors. */
  readonly asksServers: boolean;
  /** A listener's routes verify tokens. */
  readonly verifiesTokens: boolean;
  /** A listener reports requests that fail to the agent. */
  readonly reportsErrors: boolean;
}

export function needsOf(loadBalancers: Iterable<LoadBalancer>): Needs {
  let listeners = 0;
  let checks = 0;
  let hasHttp = false;
  let hasTls = false;
  let isAsking = false;
  let hasRoutes = false;
  let asksServers = false;
  let verifiesTokens = false;
  let isReporting = false;
  for (const loadBalancer of loadBalancers) {
    for (const listener of loadBalancer.listeners) {
      if (isForHaproxy(listener)) {
        listeners += listener.addresses.length;
        hasHttp ||= listener.mode === 'http';
        hasTls ||= listener.tls !== undefined;
        isAsking ||= listener.tls !== undefined && asksForCertificates(listener.tls);
        hasRoutes ||= listener.routing !== undefined;
        asksServers ||= listener.asksServers === true || listener.replacesErrors === true;
        verifiesTokens ||= listener.tokenKeys !== undefined;
        isReporting ||= reportsErrors(listener);
      }
      if (hasSection(listener) && listener.pool.monitor !== undefined) checks += listener.pool.members.length;
    }
  }
  const has = { hasHttp, hasTls, hasRoutes, asksServers, verifiesTokens };
  return { listeners, checks, ...has, asksForCertificates: isAsking, reportsErrors: isReporting };
}

/**
 * The connections that fit: at most `configured`, or as many as possible if that is 0. Needs are rounded up to a power of
 * two, so that a few more listeners change nothing and members added at runtime have descriptors for their checks.
 */
export function maxConnections(
  configured: number,
  fileLimit: number,
  needs: Pick<Needs, 'listeners' | 'checks'>,
): { value: number; problem: string | undefined } {
  const reserved = OWN_DESCRIPTORS + roundUp(needs.listeners + needs.checks);
  const fit = Math.floor((fileLimit - reserved) / 2);
  const most = configured > 0 ? configured : MAX_CONNECTIONS;
  const value = most <= fit ? most : Math.max(MIN_CONNECTIONS, roundDown(fit));
  const requested = configured > 0 ? configured : value;
  if (requested <= fit) return { value, problem: undefined };
  const needed = reserved + 2 * requested;
  const consequence = value < requested ? `, so it accepts ${value} connections` : '';
  return {
    value,
    problem: `HAProxy needs ${needed} file descriptors for ${requested} connections, ${needs.listeners} listeners and ${needs.checks} health checks, but the limit is ${fileLimit}${consequence}: raise LimitNOFILE (ulimit -n) or lower the setting maxConnections`,
  };
}

/** The connections of one namespace: `configured`, or nine tenths of `all` if that is 0. */
export function namespaceConnections(configured: number, all: number): number {
  return configured > 0 ? configured : Math.floor(all * 0.9);
}

function roundUp(count: number): number {
  let size = 256;
  while (size < count) size *= 2;
  return size;
}

/** To two significant digits. */
function roundDown(count: number): number {
  if (count < 100) return Math.max(0, count);
  const unit = 10 ** (Math.floor(Math.log10(count)) - 1);
  return Math.floor(count / unit) * unit;
}
