// Renders haproxy.cfg: the global section, and the listeners of each load balancer, cached by its identity. Pure, except
// that it reads the templates at the start.

import { hash } from 'node:crypto';
import { loadTemplate, type View } from '../../base/template.ts';
import type { HealthMonitor, Listener, LoadBalancer, Member, Pool } from '../../model/load-balancer.ts';
import { fallbackBackend } from '../../model/names.ts';
import { grpcExpectation, grpcQuestion } from './grpc-check.ts';
import {
  algorithmOf,
  allowedLines,
  hasFallback,
  isForHaproxy,
  serverKeywords,
  socketAddress,
  structureOf,
  USUAL_WEIGHT,
} from './listener-config.ts';
import { globalValues, type RenderContext } from './render-context.ts';

const templates = {
  global: loadTemplate('haproxy/global'),
  listener: loadTemplate('haproxy/listener'),
};
const templatesHash = hash(
  'sha256',
  Object.values(templates)
    .map(({ text }) => text)
    .join(''),
);

/** The part before the first load balancer. `structure`: see structureHash(); `show info` of a worker reports it. */
export function renderGlobal(context: RenderContext, structure: string): string {
  const { aclId: _, sharedTables, ...values } = context;
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
export function structureHash(context: RenderContext, loadBalancers: Iterable<LoadBalancer>): string {
  const digests = [templatesHash, globalValues(context)];
  for (const loadBalancer of loadBalancers) digests.push(structureDigest(loadBalancer, context.aclId));
  return hash('sha256', digests.join('')).slice(0, 32);
}

const digests = new WeakMap<LoadBalancer, { aclId: RenderContext['aclId']; digest: string }>();

/** Cached by load balancer; '' if HAProxy serves none of its listeners. */
function structureDigest(loadBalancer: LoadBalancer, aclId: RenderContext['aclId']): string {
  const known = digests.get(loadBalancer);
  if (known?.aclId === aclId) return known.digest;
  const structures = loadBalancer.listeners
    .filter(isForHaproxy)
    .map((listener) => `${structureOf(listener)}${aclId(listener.name, 0)}\n`);
  const digest = structures.length === 0 ? '' : hash('sha256', structures.join(''), 'base64');
  digests.set(loadBalancer, { aclId, digest });
  return digest;
}

const sections = new WeakMap<LoadBalancer, Buffer>();

/**
 * The listeners of one load balancer, each a `listen` section, because HAProxy 3.3 and newer refuse a frontend and a backend
 * of the same name. Empty if HAProxy serves none of them. Bytes outside V8's heap, which later writes of the file reuse.
 */
export function renderLoadBalancer(loadBalancer: LoadBalancer, context: RenderContext): Buffer {
  let section = sections.get(loadBalancer);
  if (section === undefined) {
    const text = loadBalancer.listeners
      .filter(isForHaproxy)
      .map((listener) => templates.listener({ ...frontView(listener, context), ...poolView(listener) }))
      .join('');
    section = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    section.write(text);
    sections.set(loadBalancer, section);
  }
  return section;
}

function frontView(listener: Listener, context: RenderContext): View {
  return {
    name: listener.name,
    namespace: listener.labels.namespace,
    mode: listener.mode,
    isHttp: listener.mode === 'http',
    clientTimeout: listener.clientTimeout,
    connectionLimit: listener.connectionLimit,
    binds: listener.addresses.map((address) => ({
      address: `${socketAddress(address, listener.port)}${listener.family === 'v6' ? ' v6only' : ''}`,
      acceptProxy: listener.acceptProxy,
    })),
    allowed: allowedLines(listener).map((cidrs, line) => ({
      id: context.aclId(listener.name, line),
      cidrs: cidrs.join(' '),
    })),
    // `connection` rules run before the PROXY protocol header with the client's address.
    phase: listener.acceptProxy ? 'session' : 'connection',
    rateLimit: listener.rateLimit,
    // HAProxy reports 1 for the whole window after a window with one connection.
    rateWindow: listener.rateLimit === 1 ? 500 : 1000,
    tableType: listener.family === 'v4' ? 'ip' : 'ipv6',
  };
}

const BALANCE = {
  'round-robin': 'roundrobin',
  'least-connections': 'leastconn',
  'source-hash': 'source',
  random: 'random(2)',
} as const;

function poolView({ name, pool }: Listener): View {
  const { monitor, timeouts } = pool;
  const algorithm = algorithmOf(pool);
  return {
    balance: BALANCE[algorithm],
    isConsistent: algorithm === 'source-hash',
    connectTimeout: timeouts.connect,
    serverTimeout: timeouts.server,
    queueTimeout: timeouts.queue,
    tunnelTimeout: timeouts.tunnel,
    persistence: pool.persistence,
    checkTimeout: monitor?.timeout ?? 0,
    httpCheck: httpCheck(monitor),
    grpcCheck: grpcCheck(monitor),
    fallback: hasFallback(pool) ? fallbackBackend(name) : '',
    fallbackServers: hasFallback(pool) ? serversOf({ ...pool, monitor: undefined }) : [],
    servers: serversOf(pool),
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

function serversOf(pool: Pool): readonly View[] {
  return pool.members.map((member) => ({
    name: member.name,
    address: socketAddress(member.address, member.port),
    keywords: serverKeywords(pool, member, weightInFile(member)).join(' '),
  }));
}

function weightInFile({ state, weight }: Member): number | 'usual' {
  if (state === 'drain') return 0;
  return weight === USUAL_WEIGHT ? 'usual' : weight;
}
