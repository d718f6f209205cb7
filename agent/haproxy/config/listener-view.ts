// What a section of haproxy.cfg says about one listener: its addresses, its clients, its routes, its pool. Pure.
// Why: docs/design/decisions/0002-one-section-for-each-listener.md

import { hash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { socketAddress } from '../../base/socket-address.ts';
import type { View } from '../../base/template.ts';
import { asksForCertificates, needsCertificates } from '../../model/client-guards.ts';
import type { HealthMonitor, Listener, Member, Pool } from '../../model/load-balancer.ts';
import { dispatcher, endedBackend, fallbackBackend } from '../../model/names.ts';
import { logView } from './connection-log.ts';
import { errorPageViews } from './error-pages.ts';
import { grpcExpectation, grpcQuestion } from './grpc-check.ts';
import {
  algorithmOf,
  allowedLines,
  cookieKeyOf,
  hasFallback,
  isOnlyChecked,
  isRouted,
  isRoutePool,
  serverKeywords,
  USUAL_WEIGHT,
} from './listener-config.ts';
import type { RenderContext } from './render-context.ts';
import { routesText, schemeOf, tlsSectionText } from './routes-text.ts';
import { bindWords, memberAuthority } from './tls-config.ts';
import { NO_USERS, userListViews } from './user-lists.ts';

/** For the template of listeners. */
export function listenerView(listener: Listener, context: RenderContext): View {
  const isCheckedOnly = isOnlyChecked(listener);
  const isPool = isRoutePool(listener);
  const isFrontend = isRouted(listener);
  const kind = {
    isOnlyChecked: isCheckedOnly,
    isFrontend,
    isBackend: isCheckedOnly || isPool,
    isListen: !isCheckedOnly && !isPool && !isFrontend,
    isServed: !isCheckedOnly && !isPool,
    hasPool: !isCheckedOnly && !isFrontend,
    isRoutePool: isPool && listener.mode === 'http',
    name: listener.name,
    mode: isCheckedOnly ? 'tcp' : listener.mode,
  };
  return {
    ...kind,
    ...(kind.isServed && frontView(listener, context)),
    ...(kind.hasPool ? poolView(listener, context) : { fallback: '' }),
    ...checkView(listener, context),
  };
}

/** What the servers of a listener and their checks need. */
function checkView({ pool }: Listener, { certificates }: RenderContext): View {
  const { monitor, timeouts } = pool;
  return {
    connectTimeout: timeouts.connect,
    checkTimeout: monitor?.timeout ?? 0,
    httpCheck: httpCheck(monitor),
    grpcCheck: grpcCheck(monitor),
    memberAuthority: memberAuthority(certificates, pool),
    servers: serversOf(pool, certificates),
  };
}

function frontView(listener: Listener, context: RenderContext): View {
  const { dispatch } = listener;
  const places = listener.addresses.map(
    (address) => `${socketAddress(address, listener.port)}${listener.family === 'v6' ? ' v6only' : ''}`,
  );
  return {
    namespace: listener.labels.namespace,
    routes: routesText(listener, context),
    tlsSection: tlsSectionText(listener, context),
    isHttp: listener.mode === 'http',
    hasProxies: listener.trustedProxies !== undefined,
    // Views of their own, because lines do not see the values around them.
    proxies: listener.trustedProxies === undefined ? [] : [proxiesView(listener, listener.trustedProxies)],
    scheme: schemeOf(listener),
    port: listener.port,
    requestIds: listener.requestIds === true,
    errorPages: errorPageViews(listener, context.pages),
    compresses: listener.compression === 'gzip',
    userLists: userListViews(listener, context.users ?? NO_USERS),
    clientTimeout: listener.clientTimeout,
    connectionLimit: listener.connectionLimit,
    isTls: listener.tls !== undefined,
    asksForCertificates: listener.tls !== undefined && asksForCertificates(listener.tls),
    // A trusted proxy may have ended the TLS of its clients.
    keepsClientNames:
      listener.trustedProxies !== undefined &&
      (listener.tls === undefined || !asksForCertificates(listener.tls)),
    needsCertificates: listener.tls !== undefined && needsCertificates(listener.tls),
    boot: context.boot,
    binds: (dispatch === undefined ? places : [endedBind(listener, context)]).map((address) => ({
      address,
      acceptProxy: listener.acceptProxy || dispatch !== undefined,
      tls: bindWords(context.certificates, listener),
    })),
    dispatch: dispatch === undefined ? [] : [dispatchView(listener, places, context)],
    isDispatched: dispatch !== undefined,
    allowed: allowedLines(listener).map((cidrs, line) => ({
      id: context.aclId(listener.name, line),
      cidrs: cidrs.join(' '),
    })),
    // `connection` rules run before the PROXY protocol header with the client's address.
    phase: listener.acceptProxy || dispatch !== undefined ? 'session' : 'connection',
    rateLimit: listener.rateLimit,
    // HAProxy reports 1 for the whole window after a window with one connection.
    rateWindow: listener.rateLimit === 1 ? 500 : 1000,
    log: logView(listener, context.log, context.logFormat),
    tableType: listener.family === 'v4' ? 'ip' : 'ipv6',
  };
}

function proxiesView(listener: Listener, cidrs: readonly string[]): View {
  return { cidrs: cidrs.join(' '), scheme: schemeOf(listener), port: listener.port };
}

/** The frontend that passes TLS of some hosts through, and the way from it to the listener, a socket of HAProxy's own. */
function dispatchView(listener: Listener, places: readonly string[], context: RenderContext): View {
  const { name, dispatch, labels } = listener;
  return {
    name: dispatcher(name),
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
} as const;

/** Of the client and the period of the timeout, so that a client that was away for that long may get another member. */
const AFFINITY_BALANCE = 'hash src,concat(-,txn.affinity_period)';

function poolView(listener: Listener, { certificates }: RenderContext): View {
  const { name, pool } = listener;
  const { timeouts } = pool;
  const algorithm = algorithmOf(pool);
  return {
    balance: pool.persistence > 0 ? AFFINITY_BALANCE : BALANCE[algorithm],
    isConsistent: algorithm === 'source-hash',
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
    fallback: hasFallback(listener) ? fallbackBackend(name) : '',
    fallbackServers: hasFallback(listener) ? serversOf({ ...pool, monitor: undefined }, certificates) : [],
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
