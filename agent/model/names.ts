// Builds and parses the keys of owners and the names of listeners and backends; no other file does.
// The parts of a name are joined by colons, which namespaces and names of objects cannot contain. Pure.
// Why: docs/design/decisions/0001-server-names.md

import type { Family, ListenerLabels, OwnerKey, Protocol } from './load-balancer.ts';

/**
 * The kinds of object that load balancers are made from: all Ingresses of one class make one, and a GatewayClass has only a
 * status. `Datagrams`: a listener of UDP or SCTP that Octavia has pushed; its name is Octavia's id.
 */
export type OwnerKind = 'Service' | 'Gateway' | 'GatewayClass' | 'Ingress' | 'Pool' | 'Datagrams';

export interface Owner {
  readonly kind: OwnerKind;
  readonly namespace: string;
  readonly name: string;
}

const PREFIXES: Readonly<Record<OwnerKind, string>> = {
  Service: '',
  Gateway: 'gateway:',
  GatewayClass: 'gatewayclass:',
  Ingress: 'ingress:',
  Pool: 'pool:',
  Datagrams: 'datagrams:',
};
const OBJECTS: Readonly<Record<OwnerKind, string>> = {
  Service: 'Service',
  Gateway: 'Gateway',
  GatewayClass: 'GatewayClass',
  Ingress: 'IngressClass',
  Pool: 'Pool',
  Datagrams: 'Listener',
};
const KINDS = Object.keys(PREFIXES) as readonly OwnerKind[];

export function keyOf({ kind, namespace, name }: Owner): OwnerKey {
  return `${PREFIXES[kind]}${namespace}/${name}`;
}

export function ownerOf(key: OwnerKey): Owner {
  const kind = KINDS.find((each) => PREFIXES[each] !== '' && key.startsWith(PREFIXES[each])) ?? 'Service';
  const [namespace = '', name = ''] = key.slice(PREFIXES[kind].length).split('/', 2);
  return { kind, namespace, name };
}

/** Stands for the namespace of an owner that has none. */
export const NO_NAMESPACE = '-';

/** As in a `Problem`: `Service default/web`, `IngressClass edge`. */
export function objectOf(key: OwnerKey): string {
  const { kind, namespace, name } = ownerOf(key);
  return `${OBJECTS[kind]} ${namespace === NO_NAMESPACE ? name : `${namespace}/${name}`}`;
}

/** `Service`, `IngressClass`. */
export function kindInWords(key: OwnerKey): string {
  return OBJECTS[ownerOf(key).kind];
}

/** For the middle of a sentence: `Service "default/web"`. */
export function objectInWords(key: OwnerKey): string {
  const { kind, namespace, name } = ownerOf(key);
  return `${OBJECTS[kind]} "${namespace === NO_NAMESPACE ? name : `${namespace}/${name}`}"`;
}

/** `default:web:tcp:80:v4` for a Service, `gateway:default:edge:tcp:443:v4` for a Gateway. */
export function listenerName(
  { kind, namespace, name }: Owner,
  { protocol, port }: { readonly protocol: Protocol; readonly port: number },
  family: Family,
): string {
  // join(), because V8 keeps the parts of a template beside the whole text.
  return PREFIXES[kind] + [namespace, name, protocol.toLowerCase(), port, family].join(':');
}

/** The stick table of what a listener has refused. */
export function refusalTable(listener: string): string {
  return `${listener}:refusals`;
}

/**
 * The pool of a Service for routes. `profile`: '', or letters and digits for what HAProxy can only do for a whole pool, so that
 * routes with different wishes have different pools.
 */
export function poolKey(namespace: string, service: string, profile: string): OwnerKey {
  // The names of Services have no dots.
  const name = profile === '' ? service : `${service}.${profile}`;
  return keyOf({ kind: 'Pool', namespace, name });
}

export function serviceOfPool(pool: OwnerKey): { readonly service: string; readonly profile: string } {
  const { namespace, name } = ownerOf(pool);
  const [service = '', profile = ''] = name.split('.', 2);
  return { service: `${namespace}/${service}`, profile };
}

/** A pool's listener has members of both families, whatever its name says. */
export function poolListener(pool: OwnerKey, port: number): string {
  return listenerName(ownerOf(pool), { protocol: 'TCP', port }, 'v4');
}

/** `TCP port 80 (IPv4)`. */
export function listenerInWords({
  protocol,
  port,
  family,
}: {
  readonly protocol: Protocol;
  readonly port: number;
  readonly family: Family;
}): string {
  return `${protocol} port ${port} (${family === 'v4' ? 'IPv4' : 'IPv6'})`;
}

/** Readable in HAProxy's logs; the port follows the last colon. Joined, because V8 keeps the parts of a template. */
export function memberName(address: string, port: number): string {
  return [address, port].join(':');
}

const LISTENER =
  '(?:(gateway|ingress|pool|datagrams):)?([a-z0-9.-]+):([a-z0-9.-]+):(tcp|udp|sctp):(\\d+):(v[46])';
const WHOLE_LISTENER = new RegExp(`^${LISTENER}$`);
const LISTENERS = new RegExp(LISTENER, 'g');

/** The names of listeners in a text, such as an alert of HAProxy. */
export function listenersIn(text: string): readonly string[] {
  return Array.from(text.matchAll(LISTENERS), ([name]) => name);
}

/** True if the name of a HAProxy proxy is that of a listener. */
export function isListener(name: string): boolean {
  return WHOLE_LISTENER.test(name);
}

/** The key of the load balancer that a listener belongs to; '' if it is not the name of a listener. */
export function ownerOfListener(name: string): OwnerKey {
  const [, prefix, namespace = '', owner = ''] = WHOLE_LISTENER.exec(name) ?? [];
  if (owner === '') return '';
  return `${prefix === undefined ? '' : `${prefix}:`}${namespace}/${owner}`;
}

/** For a listener that left the model but still has metrics; undefined if it is not the name of a listener. */
export function labelsOfListener(name: string): ListenerLabels | undefined {
  const [, , namespace, service, protocol, port, family] = WHOLE_LISTENER.exec(name) ?? [];
  if (namespace === undefined || service === undefined || port === undefined) return undefined;
  return {
    namespace,
    service,
    port,
    protocol: protocol?.toUpperCase() as Protocol,
    family: family as Family,
  };
}

const FALLBACK = ':all-down';

/** The backend that gets a listener's connections while all checks fail. */
export function fallbackBackend(listener: string): string {
  return `${listener}${FALLBACK}`;
}

/** The frontend that passes TLS of some hosts through, in front of a listener that ends that of the others. */
export function dispatcher(listener: string): string {
  return `${listener}:sni`;
}

export function listenerOfFrontend(frontend: string): string {
  return frontend.replace(/:sni$/, '');
}

/** The backend by which that frontend reaches the listener. */
export function endedBackend(listener: string): string {
  return `${listener}:ended`;
}

/** A backend without servers for the pool of a new route, which has this name for one worker only. */
export function spareBackend(number: number): string {
  return `headgate:spare:${number}`;
}

/** The listener that a backend belongs to. */
export function listenerOfBackend(backend: string): string {
  return backend.endsWith(FALLBACK) ? backend.slice(0, -FALLBACK.length) : backend;
}
