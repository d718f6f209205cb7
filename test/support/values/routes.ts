// Gateways with routes, and the pools that they send to, as values of the model, for tests.

import type { Listener, LoadBalancer, Member } from '../../../agent/model/load-balancer.ts';
import { keyOf, listenerName, memberName } from '../../../agent/model/names.ts';
import type {
  ForwardAction,
  HostPattern,
  HostRoutes,
  RouteEntry,
  RouteMatch,
  RouteRule,
  RouteSection,
  Routing,
  WeightedBackend,
} from '../../../agent/model/routes.ts';
import { stableId } from '../../../agent/translate/service/members.ts';
import { listenerIdentity } from './load-balancers.ts';

export const POOL: Listener['pool'] = {
  algorithm: 'round-robin',
  persistence: 0,
  monitor: undefined,
  tls: undefined,
  httpVersion: '1.1',
  cookie: '',
  proxyProtocol: 'none',
  timeouts: { connect: 1_000, server: 50_000, tunnel: 0, queue: 5_000 },
  memberConnectionLimit: 0,
  whenEmpty: 'reject',
  whenAllDown: 'reject',
  members: [],
};

function listenerOf(name: string, port: number): Listener {
  return {
    name,
    ...listenerIdentity(name),
    protocol: 'TCP',
    port,
    portName: '',
    family: 'v4',
    addresses: [],
    mode: 'http',
    tls: undefined,
    acceptProxy: false,
    allowedCidrs: ['0.0.0.0/0'],
    connectionLimit: 0,
    log: 'none',
    rateLimit: 0,
    clientTimeout: 50_000,
    pool: POOL,
  };
}

function loadBalancerOf(
  kind: 'Gateway' | 'Pool',
  name: string,
  listeners: readonly Listener[],
): LoadBalancer {
  const key = keyOf({ kind, namespace: 'default', name });
  return { kind: 'LoadBalancer', key, namespace: 'default', name, vips: [], listeners, problems: [] };
}

/** The name of a pool's backend. */
export function poolName(service: string): string {
  return listenerName(
    { kind: 'Pool', namespace: 'default', name: service },
    { protocol: 'TCP', port: 80 },
    'v4',
  );
}

/** `members`: `address:port`. */
export function poolOf(
  service: string,
  members: readonly string[],
  changes: Partial<Listener> = {},
): LoadBalancer {
  const made = members.map((each): Member => {
    const [address = '', port] = each.split(':');
    const name = memberName(address, Number(port));
    return { name, id: stableId(name), address, port: Number(port), weight: 16, state: 'ready', target: '' };
  });
  const listener = listenerOf(poolName(service), 80);
  const pool = { ...POOL, ...changes.pool, members: made };
  return loadBalancerOf('Pool', service, [{ ...listener, ...changes, reachedBy: 'routes', pool }]);
}

/** `place`: the address and port of its only listener. */
export function gatewayOf(
  place: { readonly address: string; readonly port: number },
  routing: Routing | readonly RouteSection[],
  { name = 'edge', ...changes }: Partial<Listener> = {},
): LoadBalancer {
  const { address, port } = place;
  const owner = { kind: 'Gateway', namespace: 'default', name } as const;
  const listener = listenerOf(listenerName(owner, { protocol: 'TCP', port: 80 }, 'v4'), port);
  const http: Routing =
    'kind' in routing ? routing : { kind: 'http', sections: routing, detectMisdirected: false };
  return loadBalancerOf('Gateway', name, [{ ...listener, ...changes, addresses: [address], routing: http }]);
}

export function sectionOf(
  name: string,
  hostname: string,
  hosts: Readonly<Record<string, readonly RouteEntry[]>> = {},
): RouteSection {
  const all = Object.entries(hosts).map(
    ([host, entries]): HostRoutes => ({ host: patternOf(host), entries }),
  );
  return { name, hostname: patternOf(hostname), hosts: all };
}

/** `api.example.org`, `*.example.org` for any number of labels, `*` for any host. */
export function patternOf(text: string): HostPattern {
  if (text === '*') return { kind: 'any', suffix: '' };
  return text.startsWith('*.') ? { kind: 'labels', suffix: text.slice(2) } : { kind: 'exact', suffix: text };
}

/** `=/exact`, `/prefix`, or `~regular expression`. */
export function matchOf(path: string, more: Partial<RouteMatch> = {}): RouteMatch {
  const kind = path.startsWith('=') ? 'exact' : path.startsWith('~') ? 'regex' : 'prefix';
  const value = kind === 'prefix' ? path.replace(/\/$/, '') : path.slice(1);
  return { path: { kind, value }, method: '', headers: [], query: [], ...more };
}

/** `to`: the Service, or weights by Service, or an action. */
export function entryOf(
  match: RouteMatch | string,
  to: string | Readonly<Record<string, number>> | RouteRule['action'],
  more: Partial<RouteRule> = {},
): RouteEntry {
  return { match: typeof match === 'string' ? matchOf(match) : match, rule: ruleOf(to, more) };
}

export function ruleOf(
  to: string | Readonly<Record<string, number>> | RouteRule['action'],
  more: Partial<RouteRule> = {},
): RouteRule {
  return {
    name: 'HTTPRoute default/route#0',
    route: 'HTTPRoute default/route',
    action: isAction(to) ? to : forwardTo(to),
    cors: undefined,
    responseHeaders: undefined,
    limits: undefined,
    ...more,
  };
}

/** A Service that is named `-` does not exist. */
export function forwardTo(
  to: string | Readonly<Record<string, number>>,
  more: Partial<ForwardAction> = {},
): ForwardAction {
  const weights = typeof to === 'string' ? { [to]: 1 } : to;
  const backends = Object.entries(weights).map(
    ([service, weight]): WeightedBackend => ({
      pool: service === '-' ? undefined : poolName(service),
      weight,
      requestHeaders: undefined,
      responseHeaders: undefined,
    }),
  );
  const nothing = { requestHeaders: undefined, rewrite: undefined, mirrors: [], timeout: 0 };
  return { kind: 'forward', backends, failure: 500, ...nothing, ...more };
}

function isAction(
  to: string | Readonly<Record<string, number>> | RouteRule['action'],
): to is RouteRule['action'] {
  return typeof to === 'object' && typeof to.kind === 'string';
}
