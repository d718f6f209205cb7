// The only file that builds or reads the keys of owners and the names of listeners and backends.
// A name has parts joined by colons, which no namespace and no object name may hold, so it is unambiguous.
// Pure; imports only the model.

import type { Family, ListenerLabels, OwnerKey, Protocol } from './load-balancer.ts';

/** The objects that load balancers come from. */
export type OwnerKind = 'Service' | 'Gateway' | 'Ingress';

export interface Owner {
  readonly kind: OwnerKind;
  readonly namespace: string;
  readonly name: string;
}

const PREFIXES: Readonly<Record<OwnerKind, string>> = {
  Service: '',
  Gateway: 'gateway:',
  Ingress: 'ingress:',
};
const KINDS = Object.keys(PREFIXES) as readonly OwnerKind[];

export function keyOf({ kind, namespace, name }: Owner): OwnerKey {
  return `${PREFIXES[kind]}${namespace}/${name}`;
}

export function ownerOf(key: OwnerKey): Owner {
  const kind = kindOf(key);
  const [namespace = '', name = ''] = key.slice(PREFIXES[kind].length).split('/', 2);
  return { kind, namespace, name };
}

/** For people, as in a `Problem`: `Service default/web`. */
export function objectOf(key: OwnerKey): string {
  const kind = kindOf(key);
  return `${kind} ${key.slice(PREFIXES[kind].length)}`;
}

/** For people, in the middle of a sentence: `Service "default/web"`. */
export function objectInWords(key: OwnerKey): string {
  const kind = kindOf(key);
  return `${kind} "${key.slice(PREFIXES[kind].length)}"`;
}

function kindOf(key: OwnerKey): OwnerKind {
  return KINDS.find((kind) => PREFIXES[kind] !== '' && key.startsWith(PREFIXES[kind])) ?? 'Service';
}

/** `default:web:tcp:80:v4` for a Service, `gateway:default:edge:tcp:443:v4` for a Gateway. */
export function listenerName(
  { kind, namespace, name }: Owner,
  { protocol, port }: { readonly protocol: Protocol; readonly port: number },
  family: Family,
): string {
  // Joined, because V8 keeps a template in parts and as a whole.
  return PREFIXES[kind] + [namespace, name, protocol.toLowerCase(), port, family].join(':');
}

const LISTENER = '(?:(gateway|ingress):)?([a-z0-9.-]+):([a-z0-9.-]+):(tcp|udp|sctp):(\\d+):(v[46])';
const WHOLE_LISTENER = new RegExp(`^${LISTENER}$`);
const LISTENERS = new RegExp(LISTENER, 'g');

/** The names of listeners that stand anywhere in a text, such as an alert of HAProxy. */
export function listenersIn(text: string): readonly string[] {
  return Array.from(text.matchAll(LISTENERS), ([name]) => name);
}

/** Whether a proxy that HAProxy names is a listener of ours. */
export function isListener(name: string): boolean {
  return WHOLE_LISTENER.test(name);
}

/** The key of the load balancer that a listener belongs to; '' if the name is none of ours. */
export function ownerOfListener(name: string): OwnerKey {
  const [, prefix, namespace = '', owner = ''] = WHOLE_LISTENER.exec(name) ?? [];
  if (owner === '') return '';
  return `${prefix === undefined ? '' : `${prefix}:`}${namespace}/${owner}`;
}

/** For a listener that is no longer in the model, but still counts; undefined if the name is none of ours. */
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

/** The backend of a listener that gets the connections while all checks fail. */
export function fallbackBackend(listener: string): string {
  return `${listener}${FALLBACK}`;
}

/** The listener to which a backend of ours belongs. */
export function listenerOfBackend(backend: string): string {
  return backend.endsWith(FALLBACK) ? backend.slice(0, -FALLBACK.length) : backend;
}
