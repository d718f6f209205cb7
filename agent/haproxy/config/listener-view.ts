// What a section of haproxy.cfg says about one listener, a view for each part of it. Pure.

import { hash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { socketAddress } from '../../base/socket-address.ts';
import type { View } from '../../base/template.ts';
import { asksForCertificates, needsCertificates } from '../../model/client-guards.ts';
import type { HealthMonitor, Listener, Member, Pool } from '../../model/load-balancer.ts';
import { dispatcher, endedBackend, fallbackBackend } from '../../model/names.ts';
import {
  NO_REFUSAL_WORDS,
  poolRefusalWords,
  REFUSING_CHECKS,
  refusalWords,
  UNREAD,
} from '../routes/refusals.ts';
import { logView } from './connection-log.ts';
import { errorPageViews } from './error-pages.ts';
import { grpcExpectation, grpcQuestion } from './grpc-check.ts';
import {
  algorithmOf,
  allowedLines,
  clientLines,
  cookieKeyOf,
  hasFallback,
  isRouted,
  isRoutePool,
  reportsErrors,
  serverKeywords,
  USUAL_WEIGHT,
} from './listener-config.ts';
import type { RenderContext } from './render-context.ts';
import { routesText, schemeOf, tlsSectionText } from './routes-text.ts';
import { bindWords, memberAuthority } from './tls-config.ts';
import { NO_USERS, userListViews } from './user-lists.ts';

/** The servers of a listener and their checks. */
export function membersView({ pool }: Listener, { certificates }: RenderContext): View {
  const { monitor } = pool;
  return {
    checkTimeout: monitor?.timeout ?? 0,
    httpCheck: httpCheck(monitor),
    grpcCheck: grpcCheck(monitor),
    memberAuthority: memberAuthority(certificates, pool),
    servers: serversOf(pool, certificates),
  };
}

/** Addresses, certificates, limits, log and routes: what clients of a listener meet first. */
export function clientsView(listener: Listener, context: RenderContext): View {
  const { dispatch } = listener;
  const places = dispatch === undefined ? placesOf(listener) : [];
  const isReachedInside = dispatch !== undefined || keepsSocket(listener, context);
  const tls = bindWords(context.certificates, listener);
  return {
    name: listener.name,
    namespace: listener.labels.namespace,
    routes: routesText(listener, context),
    tlsSection: tlsSectionText(listener, context),
    clientTimeout: listener.clientTimeout,
    connectionLimit: listener.connectionLimit,
    isTls: listener.tls !== undefined,
    needsCertificates: listener.tls !== undefined && needsCertificates(listener.tls),
    boot: context.boot,
    binds: [
      ...places.map((address) => ({ address, acceptProxy: listener.acceptProxy, tls })),
      ...(isReachedInside ? [{ address: endedBind(listener, context), acceptProxy: true, tls }] : []),
    ],
    isDispatched: dispatch !== undefined,
    allowed: allowedLines(listener).map((cidrs, line) => ({
      id: context.aclId(listener.name, line),
      cidrs: cidrs.join(' '),
    })),
    // `connection` rules run before the PROXY protocol header with the client's address.
    phase: listener.acceptProxy || isReachedInside ? 'session' : 'connection',
    rateLimit: listener.rateLimit,
    persistence: isRouted(listener) ? 0 : listener.pool.persistence,
    log: logView(listener, context.log, context.logFormat),
    errors: reportsErrors(listener) ? [errorsView(listener)] : [],
    ...refusalsView(listener, context),
  };
}

/** What a listener in mode http does with each request, whatever its routes. */
export function httpView(listener: Listener, context: RenderContext): View {
  const { tls, trustedProxies } = listener;
  return {
    hasProxies: trustedProxies !== undefined,
    // Views of their own, because lines do not see the values around them.
    proxies: trustedProxies === undefined ? [] : [proxiesView(listener, trustedProxies)],
    scheme: schemeOf(listener),
    port: listener.port,
    requestIds: listener.requestIds === true,
    errorPages: errorPageViews(listener, context.pages),
    compresses: listener.compression === 'gzip',
    asksForCertificates: tls !== undefined && asksForCertificates(tls),
    // A trusted proxy may have ended the TLS of its clients.
    keepsClientNames: trustedProxies !== undefined && (tls === undefined || !asksForCertificates(tls)),
  };
}

/** Listeners with routes for HTTP count what they refuse. */
function refusalsView({ name, routing, dispatch }: Listener, { countsRoutes }: RenderContext): View {
  const countsRefusals = routing?.kind === 'http';
  return {
    countsRefusals,
    makesCounters: countsRefusals && !countsRoutes && dispatch === undefined,
    // The dispatcher counts the connections of the namespace.
    hasOwnNamespace: countsRefusals && dispatch !== undefined,
    refusalCounters: UNREAD + REFUSING_CHECKS.length,
    ...(countsRefusals ? refusalWords(name, countsRoutes) : NO_REFUSAL_WORDS),
  };
}

/** Sections that stand behind that of a listener. */
export function besideView(listener: Listener, context: RenderContext): View {
  const { name, rateLimit, dispatch, family } = listener;
  return {
    name,
    rateLimit,
    // HAProxy reports 1 for the whole window after a window with one connection.
    rateWindow: rateLimit === 1 ? 500 : 1000,
    tableType: family === 'v4' ? 'ip' : 'ipv6',
    ...refusalsView(listener, context),
    dispatch: dispatch === undefined ? [] : [dispatchView(listener, placesOf(listener), context)],
    userLists: userListViews(listener, context.users ?? NO_USERS),
  };
}

/** A line for each request that fails; beside a connection log, the lines of this one that say so. */
function errorsView({ log, mode }: Listener): View {
  const line = mode === 'http' ? 'headgate %b %s %ts %ST' : 'headgate %b %s %ts -';
  return { line, isBesideLog: log !== 'none', isBesideAll: log === 'all' };
}

function placesOf({ addresses, port, family }: Listener): readonly string[] {
  return addresses.map((address) => `${socketAddress(address, port)}${family === 'v6' ? ' v6only' : ''}`);
}

function proxiesView(listener: Listener, cidrs: readonly string[]): View {
  return { cidrs: cidrs.join(' '), scheme: schemeOf(listener), port: listener.port };
}

/** The frontend that passes TLS of some hosts through, and the way from it to the listener, a socket of HAProxy's own. */
function dispatchView(listener: Listener, places: readonly string[], context: RenderContext): View {
  const { name, dispatch, labels } = listener;
  return {
    name: dispatcher(name),
    ...refusalsView(listener, context),
    ended: endedBackend(name),
    socket: endedSocket(name, context),
    namespace: labels.namespace,
    clientTimeout: listener.clientTimeout,
    binds: places.map((address) => ({ address })),
    routes: routesText(
      { ...listener, name: dispatcher(name), routing: dispatch, tls: undefined },
      context,
      endedBackend(name),
    ),
  };
}

/** It has no dispatcher any more, and an old worker has: clients that wait there still come by the socket. */
export function keepsSocket(
  { name, tls, dispatch }: Listener,
  { formerlyDispatched }: RenderContext,
): boolean {
  return tls !== undefined && dispatch === undefined && formerlyDispatched?.has(name) === true;
}

function endedSocket(name: string, { adminSocket }: RenderContext): string {
  return join(dirname(adminSocket), `tls-${hash('sha256', name).slice(0, 10)}.sock`);
}

function endedBind({ name }: Listener, context: RenderContext): string {
  const { socketMode, user, group } = context;
  const owner = `${user === '' ? '' : ` user ${user}`}${group === '' ? '' : ` group ${group}`}`;
  return `unix@${endedSocket(name, context)} mode ${socketMode}${owner}`;
}

const BALANCE = {
  'round-robin': 'roundrobin',
  'least-connections': 'leastconn',
  'source-hash': 'source',
  random: 'random(2)',
  'key-hash': 'hash var(txn.hash_key)',
} as const;

/** A hash of the client and the period of the timeout, so that a client that was away for that long may get another member. */
const AFFINITY_BALANCE = 'hash src,concat(-,txn.affinity_period)';

/** How a pool chooses members, and how long it waits for them. */
export function poolView(listener: Listener): View {
  const { name, mode, pool } = listener;
  const { timeouts } = pool;
  const algorithm = algorithmOf(pool);
  return {
    balance: pool.persistence > 0 ? AFFINITY_BALANCE : BALANCE[algorithm],
    isConsistent: algorithm === 'source-hash' || algorithm === 'key-hash',
    connectTimeout: timeouts.connect,
    serverTimeout: timeouts.server,
    queueTimeout: timeouts.queue,
    tunnelTimeout: timeouts.tunnel,
    persistence: pool.persistence,
    cookie: pool.cookie,
    cookieKey: cookieKeyOf(name, pool),
    retries: pool.retry?.attempts ?? 0,
    retryCodes: pool.retry?.codes.map((code) => ` ${code}`).join('') ?? '',
    // Clients of a pool of routes may have addresses of both families.
    tableType: listener.family === 'v4' && !isRoutePool(listener) ? 'ip' : 'ipv6',
    isRoutePool: isRoutePool(listener) && mode === 'http',
    isHttp: mode === 'http',
  };
}

/** Which clients a pool of routes may serve, by NetworkPolicies. */
export function poolClientsView(listener: Listener, context: RenderContext): View {
  return {
    ...poolRefusalWords(context.countsRoutes),
    // Views of their own, because lines do not see the values around them.
    clients: clientLines(listener).map((cidrs) => ({ cidrs: cidrs.join(' ') })),
    areRestricted: listener.pool.clients !== undefined,
    areAnswered: listener.mode === 'http',
  };
}

/** The section for clients of a listener whose members all fail their checks; none, if that is refused then. */
export function fallbackView(listener: Listener, { certificates }: RenderContext): View {
  const { name, mode, pool } = listener;
  const fallback = hasFallback(listener) ? fallbackBackend(name) : '';
  if (fallback === '') return { fallback };
  return {
    ...poolView(listener),
    fallback,
    name,
    mode,
    memberAuthority: memberAuthority(certificates, pool),
    fallbackServers: serversOf({ ...pool, monitor: undefined }, certificates),
  };
}

function httpCheck(monitor: HealthMonitor | undefined): readonly View[] {
  if (monitor?.type !== 'http' && monitor?.type !== 'https') return [];
  const { method, path, host, expectedCodes, expectedBody, expectedBodyPattern } = monitor;
  return [{ method, path, host, expectedCodes, expectedBody, expectedBodyPattern }];
}

function grpcCheck(monitor: HealthMonitor | undefined): readonly View[] {
  if (monitor?.type !== 'grpc' && monitor?.type !== 'grpcs') return [];
  return [{ question: grpcQuestion(monitor), expectation: grpcExpectation }];
}

function serversOf(pool: Pool, certificates: string): readonly View[] {
  return pool.members.map((member) => ({
    name: member.name,
    address: socketAddress(member.address, member.port),
    keywords: serverKeywords(pool, member, weightInFile(member), certificates).join(' '),
  }));
}

function weightInFile({ state, weight }: Member): number | 'usual' {
  if (state === 'drain') return 0;
  return weight === USUAL_WEIGHT ? 'usual' : weight;
}
