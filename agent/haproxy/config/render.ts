// Renders haproxy.cfg: the global section, and the listeners of each load balancer, cached by its identity. Pure, except
// that it reads the templates at the start.

import { hash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { socketAddress } from '../../base/socket-address.ts';
import { loadTemplate, type View } from '../../base/template.ts';
import type { HealthMonitor, Listener, LoadBalancer, Member, Pool } from '../../model/load-balancer.ts';
import { dispatcher, endedBackend, fallbackBackend } from '../../model/names.ts';
import { LUA } from '../routes/route-files.ts';
import { MAX_ELEMENTS } from '../routes/unservable.ts';
import { logView } from './connection-log.ts';
import { answerWords, errorPageViews, pageWords } from './error-pages.ts';
import { grpcExpectation, grpcQuestion } from './grpc-check.ts';
import {
  algorithmOf,
  allowedLines,
  hasFallback,
  hasSection,
  isOnlyChecked,
  isRouted,
  isRoutePool,
  serverKeywords,
  structureOf,
  USUAL_WEIGHT,
} from './listener-config.ts';
import { globalValues, type RenderContext } from './render-context.ts';
import { spareListeners, spareProfile } from './spare-pools.ts';
import { bindWords, memberAuthority } from './tls-config.ts';
import { NO_USERS, userListViews } from './user-lists.ts';

const templates = {
  global: loadTemplate('haproxy/global'),
  listener: loadTemplate('haproxy/listener'),
  routes: loadTemplate('haproxy/routes'),
  connectionRoutes: loadTemplate('haproxy/connection-routes'),
};
const templatesHash = hash(
  'sha256',
  Object.values(templates)
    .map(({ text }) => text)
    .join(LUA),
);

/** The part before the first load balancer. `structure`: see structureHash(); `show info` of a worker reports it. */
export function renderGlobal(context: RenderContext, structure: string): string {
  const { aclId: _, sharedTables, certificates: __, boot: ___, users: ____, ...values } = context;
  return templates.global({
    ...values,
    description: descriptionOf(structure),
    usualWeight: USUAL_WEIGHT,
    sharedTables: sharedTables === undefined ? [] : [{ ...sharedTables }],
  });
}

export function descriptionOf(structure: string): string {
  return `headgate:${structure}`;
}

/**
 * A hash of all that only a reload can change: the global section, and each listener's structure with the id of its first
 * ACL, because ids with equal hashes depend on their order. `loadBalancers` in file order.
 */
export function structureHash(context: RenderContext, loadBalancers: readonly LoadBalancer[]): string {
  const digests = [templatesHash, globalValues(context)];
  for (const loadBalancer of loadBalancers) digests.push(structureDigest(loadBalancer, context.aclId));
  const profile = spareProfile(loadBalancers);
  if (profile !== undefined) digests.push(...spareListeners(profile).map(structureOf));
  return hash('sha256', digests.join('')).slice(0, 32);
}

const digests = new WeakMap<LoadBalancer, { aclId: RenderContext['aclId']; digest: string }>();

/** Cached by load balancer; '' if none of its listeners has a section. */
function structureDigest(loadBalancer: LoadBalancer, aclId: RenderContext['aclId']): string {
  const known = digests.get(loadBalancer);
  if (known?.aclId === aclId) return known.digest;
  const structures = loadBalancer.listeners
    .filter(hasSection)
    .map((listener) => `${structureOf(listener)}${aclId(listener.name, 0)}\n`);
  const digest = structures.length === 0 ? '' : hash('sha256', structures.join(''), 'base64');
  digests.set(loadBalancer, { aclId, digest });
  return digest;
}

/** By the folder of certificates: the landing has its own. */
const sections = new Map<string, WeakMap<LoadBalancer, Buffer>>();

/**
 * The listeners of one load balancer, each a `listen` section, because HAProxy 3.3 and newer refuse a frontend and a backend
 * of the same name; a backend alone if HAProxy only checks the members. Empty if it has no part in any of them. Bytes outside
 * V8's heap, which later writes of the file reuse.
 */
export function renderLoadBalancer(loadBalancer: LoadBalancer, context: RenderContext): Buffer {
  const known = sections.get(context.certificates) ?? new WeakMap<LoadBalancer, Buffer>();
  sections.set(context.certificates, known);
  let section = known.get(loadBalancer);
  if (section === undefined) {
    const text = loadBalancer.listeners
      .filter(hasSection)
      .map((listener) => templates.listener(viewOf(listener, context)))
      .join('');
    section = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    section.write(text);
    known.set(loadBalancer, section);
  }
  return section;
}

/** Empty without pools of routes. */
export function renderSpares(loadBalancers: readonly LoadBalancer[], context: RenderContext): Buffer {
  const profile = spareProfile(loadBalancers);
  if (profile === undefined) return Buffer.alloc(0);
  const sections = spareListeners(profile).map((spare) => templates.listener(viewOf(spare, context)));
  return Buffer.from(`\n# For the pools of new routes, until the next reload.${sections.join('')}`);
}

function viewOf(listener: Listener, context: RenderContext): View {
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
    hasClientCertificates: listener.tls?.clients !== undefined,
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

function schemeOf({ tls }: Pick<Listener, 'tls'>): string {
  return tls === undefined ? 'http' : 'https';
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

/** A wildcard covers at most one label less. */
const MOST_LABELS = 12;
/** Wider hostnames to which a request falls back. */
const MOST_WIDER = 3;
const ORIGIN_LABELS = 5;
/** The first for statuses from 100 to 199, and so on; in the order of their frequency. */
const STATUS_COUNTERS = [1, 2, 3, 4, 0].map((counter) => ({
  counter,
  from: counter * 100 + 100,
  to: counter * 100 + 199,
}));

/** '' without routes. `ended`: of a dispatcher, the backend for TLS that is not passed through. */
function routesText(
  {
    name,
    routing,
    tls,
    log,
    userLists = [],
    errorPages,
  }: Pick<Listener, 'name' | 'routing' | 'tls' | 'log' | 'userLists' | 'errorPages'>,
  { routes: folder, pages, dotSegments = 'reject', countsRoutes }: RenderContext,
  ended = '',
): string {
  if (routing === undefined) return '';
  // A view of each line, because lines do not see the values around them.
  const lines = (from: number, to: number): readonly View[] =>
    Array.from({ length: to - from + 1 }, (_, at) => ({ name, folder, number: from + at }));
  const labels = lines(3, MOST_LABELS);
  if (routing.kind !== 'http') {
    const isTls = routing.kind === 'tls';
    const whose = { isPassed: isTls && tls === undefined, isEnded: isTls && tls !== undefined };
    const isDispatcher = ended !== '';
    return templates
      .connectionRoutes({ name, folder, labels, isTls, ...whose, isDispatcher, ended })
      .trimEnd();
  }
  return templates
    .routes({
      name,
      folder,
      labels,
      rejectsDots: dotSegments === 'reject',
      normalizesDots: dotSegments === 'normalize',
      hasUsers: userLists.length > 0,
      detectsMisdirected: routing.detectMisdirected && tls !== undefined,
      scheme: schemeOf({ tls }),
      widers: lines(1, MOST_WIDER),
      elements: lines(0, MAX_ELEMENTS).map((line) => ({ ...line, field: Number(line.number) + 2 })),
      originLabels: lines(2, ORIGIN_LABELS),
      redirects: ['301', '302', '303', '307', '308'],
      answers: ['403', '404', '503'].map((status) => ({
        status,
        page: pageWords(pages, errorPages, status),
      })),
      ...answerWords({ errorPages }, pages),
      noPool: pageWords(pages, errorPages, '500'),
      countsRoutes,
      logsRules: log !== 'none',
      counters: countsRoutes ? STATUS_COUNTERS : [],
    })
    .trimEnd();
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
