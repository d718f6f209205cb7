// The listeners of the load balancer of a Gateway: one for each port and family, whatever number of the Gateway's listeners share
// the port. Pure.

import { compactList } from '../../base/compact.ts';
import { portRefusal } from '../../kubernetes/port-limit.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Listener, OwnerKey, Problem, Tls, Vip } from '../../model/load-balancer.ts';
import { listenerName, ownerOf } from '../../model/names.ts';
import type { HttpRouting, Routing, TcpRouting, TlsHost, TlsRouting } from '../../model/routes.ts';
import { ownAddresses } from '../own-addresses.ts';
import { hostKey } from '../routes/host-pattern.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import { type RoutedPort, routedListener } from '../routes/routed-listener.ts';
import type { TranslatorOptions } from '../service/translator-options.ts';
import type { GatewayMemory } from './gateway-memory.ts';
import type { GatewayView } from './gateway-view.ts';
import { withEnds } from './hosts-of-one-namespace.ts';
import {
  type CertificatesBySection,
  endsTls,
  type GatewayListener,
  isPassedThrough,
  isUsable,
  transportOf,
} from './listeners.ts';
import type { AttachedRoute, RoutesByListener } from './route-portions.ts';
import { type UdpMembers, udpMembers } from './udp-members.ts';

export interface ModelOptions {
  readonly owner: { readonly key: OwnerKey; readonly vips: readonly Vip[] };
  readonly listeners: readonly GatewayListener[];
  readonly certificatesOf: CertificatesBySection;
  readonly places: RoutesByListener;
  readonly memory: GatewayMemory;
  /** What clients meet before any route. */
  readonly clients: Pick<RoutedPort, 'front' | 'users' | 'tokenKeys' | 'asksServers'>;
  readonly translator: Pick<TranslatorOptions<GatewayView>, 'cluster' | 'settings' | 'desired' | 'ofPools'>;
  readonly reads: Set<Dependency>;
}

export interface ModelListeners {
  readonly listeners: readonly Listener[];
  readonly problems: readonly Problem[];
}

export function modelListeners(options: ModelOptions): ModelListeners {
  const { owner, places, translator, clients } = options;
  const { key, vips } = owner;
  const listeners: Listener[] = [];
  const problems: Problem[] = [];
  for (const ofPort of byPort(options.listeners.filter(isUsable))) {
    const [first] = ofPort;
    if (first === undefined) continue;
    const { port } = first.spec;
    const protocol = transportOf(first.spec);
    const passed = ofPort.filter(({ spec }) => isPassedThrough(spec));
    const others = ofPort.filter(({ spec }) => !isPassedThrough(spec));
    const own = others.length === 0 ? passed : others;
    const routing = protocol === 'UDP' ? undefined : routingOf(own, places, options);
    const isMixed = passed.length > 0 && others.length > 0;
    const tls = tlsOf(ofPort, options.certificatesOf);
    for (const family of ['v4', 'v6'] as const) {
      const ofFamily = vips.filter((vip) => vip.family === family).map(({ address }) => address);
      if (ofFamily.length === 0) continue;
      const { own: addresses } = ownAddresses(
        key,
        { protocol, port },
        ofFamily,
        translator.desired.portOwners,
        portRefusal(key, translator.ofPools(key)),
      );
      const place = { key, protocol, port, family, addresses, routing, tls, ...clients };
      const listener = routedListener(place, translator.settings());
      const ofUdp = protocol === 'UDP' ? membersByUdp(options, ofPort, places, listener) : undefined;
      problems.push(...(ofUdp?.problems ?? []));
      listeners.push({
        ...listener,
        ...(isMixed && { dispatch: dispatchOf(passed, others, places, clients.front.isClosed) }),
        ...(ofUdp && { allowedCidrs: ofUdp.allowed }),
        pool: { ...listener.pool, members: ofUdp?.members ?? [] },
      });
    }
  }
  return { listeners: compactList(listeners), problems };
}

/** The name of the model's listeners that serve one of the Gateway's. */
export function namesOf(
  key: OwnerKey,
  { spec }: GatewayListener,
  model: readonly Listener[],
): readonly string[] {
  const protocol = transportOf(spec);
  return (['v4', 'v6'] as const)
    .map((family) => listenerName(ownerOf(key), { protocol, port: spec.port }, family))
    .filter((name) => model.some((listener) => listener.name === name));
}

function byPort(listeners: readonly GatewayListener[]): readonly (readonly GatewayListener[])[] {
  const ports = new Map<string, GatewayListener[]>();
  for (const listener of listeners) {
    const place = `${transportOf(listener.spec)} ${listener.spec.port}`;
    const found = ports.get(place);
    if (found === undefined) ports.set(place, [listener]);
    else found.push(listener);
  }
  return [...ports.values()];
}

/** `listeners`: of one port, which all speak the same. */
function routingOf(
  listeners: readonly GatewayListener[],
  routes: RoutesByListener,
  options: ModelOptions,
): Routing {
  const protocol = listeners[0]?.spec.protocol;
  if (protocol === 'TCP') return tcpRouting(listeners, routes);
  if (protocol === 'TLS') return tlsRouting(listeners, routes);
  return httpRouting(listeners, routes, options);
}

function httpRouting(
  listeners: readonly GatewayListener[],
  routes: RoutesByListener,
  { memory, translator }: ModelOptions,
): HttpRouting {
  const isShared = !translator.settings().hostsOfOneNamespace;
  const routesOf = (listener: GatewayListener) => {
    const found = routes.get(listener) ?? [];
    return isShared ? found : withEnds(found);
  };
  const sections = listeners.map((listener) => ({
    name: listener.section,
    hostname: listener.host,
    hosts: memory.hostsOf(listener.section, routesOf(listener)),
  }));
  return { kind: 'http', sections, detectMisdirected: listeners.some(({ spec }) => endsTls(spec)) };
}

/** The older one of two routes with one host counts. A listener's own host without routes leads nowhere. */
function tlsRouting(listeners: readonly GatewayListener[], routes: RoutesByListener): TlsRouting {
  const hosts = new Map<string, TlsHost>();
  for (const listener of listeners) {
    for (const { resolved, hosts: common } of byAge(routes.get(listener) ?? []))
      for (const { host, key } of common) {
        if (!hosts.has(key)) hosts.set(key, { host, backends: resolved.backends });
      }
    const key = hostKey(listener.host);
    if (!hosts.has(key)) hosts.set(key, { host: listener.host, backends: [] });
  }
  return { kind: 'tls', hosts: [...hosts.values()] };
}

/** For a port on which TLS of `passed` is passed through, and that of `ended` is ended. A closed Gateway passes nothing. */
function dispatchOf(
  passed: readonly GatewayListener[],
  ended: readonly GatewayListener[],
  routes: RoutesByListener,
  isClosed: boolean,
): TlsRouting {
  const hosts = ended.map(({ host }): TlsHost => ({ host, backends: [], isEnded: true }));
  const leading = tlsRouting(passed, routes).hosts;
  const kept = isClosed ? leading.map(({ host }): TlsHost => ({ host, backends: [] })) : leading;
  return { kind: 'tls', hosts: [...kept, ...hosts] };
}

/** The oldest route counts. */
function tcpRouting(listeners: readonly GatewayListener[], routes: RoutesByListener): TcpRouting {
  const [oldest] = byAge(listeners.flatMap((listener) => routes.get(listener) ?? []));
  return { kind: 'tcp', backends: oldest?.resolved.backends ?? [] };
}

function byAge(places: readonly AttachedRoute[]): readonly AttachedRoute[] {
  return places.toSorted((a, b) => byPrecedence(a.route, b.route));
}

/**
 * A name that belongs to no listener gets the certificates of the one for all names, else those of the first one; and it needs a
 * client certificate if any listener does, so that it is no way around.
 */
function tlsOf(listeners: readonly GatewayListener[], of: CertificatesBySection): Tls | undefined {
  const ofTls = listeners.filter(({ spec }) => endsTls(spec));
  const any = ofTls.find(({ host }) => host.kind === 'any');
  const wide = any ?? ofTls[0];
  const certificates = (wide && of.get(wide.section)?.certificates) ?? [];
  if (certificates.length === 0) return undefined;
  const strict = any ?? ofTls.find(({ section }) => of.get(section)?.clients !== undefined);
  return {
    certificates,
    minVersion: '1.2',
    ciphers: [],
    clients: strict && of.get(strict.section)?.clients,
    alpn: ofTls[0]?.spec.protocol === 'HTTPS' ? ['h2', 'http/1.1'] : [],
    sections: ofTls
      .filter((listener) => listener !== any)
      .map(({ host, section }) => ({
        hostname: host,
        certificates: of.get(section)?.certificates ?? [],
        clients: of.get(section)?.clients,
      })),
  };
}

/** The members of the oldest route's Services. */
function membersByUdp(
  { translator, reads }: ModelOptions,
  listeners: readonly GatewayListener[],
  routes: RoutesByListener,
  { family, allowedCidrs: allowed }: Listener,
): UdpMembers {
  const [oldest] = byAge(listeners.flatMap((listener) => routes.get(listener) ?? []));
  return udpMembers(oldest?.resolved.members ?? [], { family, allowed }, { ...translator, reads });
}
