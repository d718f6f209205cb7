// The listeners of a Gateway and of the ListenerSets attached to it, each judged alone and against the others on its port.
// Pure.

import { quote } from '../../base/quote.ts';
import type {
  Gateway,
  ListenerSet,
  ListenerSpec,
  NamespaceRule,
} from '../../kubernetes/gateway/gateway-objects.ts';
import { GATEWAY_GROUP } from '../../kubernetes/gateway/names.ts';
import type { GroupKind } from '../../kubernetes/gateway/object-reference.ts';
import type { RouteKind } from '../../kubernetes/gateway/route-objects.ts';
import { matches } from '../../kubernetes/label-selector.ts';
import type { Dependency, RouteParent } from '../../model/desired-state.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type { HostPattern } from '../../model/routes.ts';
import { hostPattern } from '../routes/host-pattern.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { GatewayView } from './gateway-view.ts';
import { type ListenerCertificates, listenerCertificates } from './listener-tls.ts';

export interface GatewayListener {
  /** The object that has it. */
  readonly parent: RouteParent;
  readonly namespace: string;
  readonly spec: ListenerSpec;
  /** Unique among all listeners of the Gateway: `http`, of a ListenerSet `shop/extra/http`. */
  readonly section: string;
  readonly host: HostPattern;
  /** Kinds of routes that may attach. */
  readonly supportedKinds: readonly GroupKind[];
  /** Another listener of its port has the same hosts, or speaks something else. */
  readonly conflict: RefusalReason | undefined;
  /** Why it is not accepted, `conflict` included. */
  readonly notAccepted: RefusalReason | undefined;
  readonly unresolved: RefusalReason | undefined;
  /** It ends TLS with one or more, which are in `CertificatesBySection`: a renewed one changes nothing for routes. */
  readonly hasCertificates: boolean;
  /** A client's name may belong to another TLS listener of the port, too. */
  readonly overlaps: boolean;
}

/** True if it gets traffic. */
export function isUsable({ notAccepted, spec, hasCertificates }: GatewayListener): boolean {
  return notAccepted === undefined && (!endsTls(spec) || hasCertificates);
}

export function endsTls({ protocol, tls }: ListenerSpec): boolean {
  return protocol === 'HTTPS' || (protocol === 'TLS' && tls?.mode !== 'Passthrough');
}

/** The transport protocol of a listener's port. */
export function transportOf({ protocol }: ListenerSpec): 'TCP' | 'UDP' {
  return protocol === 'UDP' ? 'UDP' : 'TCP';
}

const KINDS: Readonly<Record<string, readonly RouteKind[]>> = {
  HTTP: ['HTTPRoute', 'GRPCRoute'],
  HTTPS: ['HTTPRoute', 'GRPCRoute'],
  TLS: ['TLSRoute'],
  TCP: ['TCPRoute'],
  UDP: ['UDPRoute'],
};

/** By section, of listeners that end TLS. */
export type CertificatesBySection = ReadonlyMap<string, ListenerCertificates>;

export interface JudgedListeners {
  readonly listeners: readonly GatewayListener[];
  readonly certificates: CertificatesBySection;
}

export interface ListenersContext {
  readonly view: GatewayView;
  readonly certificates: CertificatesView;
  /** Adds what is read. */
  readonly reads: Set<Dependency>;
}

/** In order of precedence: those of the Gateway, then those of the ListenerSets by age. */
export function gatewayListeners(
  gateway: Gateway,
  sets: readonly ListenerSet[],
  context: ListenersContext,
): JudgedListeners {
  const certificates = new Map<string, ListenerCertificates>();
  const objects = [
    { parent: `gateway ${gateway.key}` as const, object: gateway, prefix: '' },
    ...sets.toSorted(byPrecedence).map((set) => ({
      parent: `listenerset ${set.key}` as const,
      object: set,
      prefix: `${set.key}/`,
    })),
  ];
  const accepted = new AcceptedListeners();
  const listeners = objects.flatMap(({ parent, object, prefix }) => {
    const kind = parent.startsWith('gateway ') ? 'Gateway' : 'ListenerSet';
    const owner = { kind, namespace: object.namespace } as const;
    const lost = new Map(object.listeners.map((spec) => [spec, accepted.conflictOf(spec)]));
    const left = object.listeners.filter((spec) => lost.get(spec) === undefined);
    const judged = object.listeners.map((spec) => {
      const siblings = left.filter((other) => other !== spec);
      return { spec, conflict: lost.get(spec) ?? firstConflict(spec, siblings) };
    });
    for (const { spec, conflict } of judged) if (conflict === undefined) accepted.add(spec);
    return judged.map(({ spec, conflict }) => {
      const section = `${prefix}${spec.name}`;
      const tls = endsTls(spec) ? listenerCertificates(gateway, owner, spec, context) : undefined;
      if (tls !== undefined) certificates.set(section, tls);
      return judge(owner, { parent, section, spec, conflict }, tls);
    });
  });
  const overlapping = overlappingOf(listeners);
  return {
    listeners: listeners.map((listener) =>
      overlapping.has(listener) ? { ...listener, overlaps: true } : listener,
    ),
    certificates,
  };
}

/** The listeners that have no conflict: of each port one of each way to speak, and one of each host. */
class AcceptedListeners {
  readonly #ofPort = new Map<
    string,
    { readonly kinds: Map<string, ListenerSpec>; readonly hosts: Map<string, ListenerSpec> }
  >();

  conflictOf(spec: ListenerSpec): RefusalReason | undefined {
    const found = this.#ofPort.get(portText(spec));
    if (found === undefined) return undefined;
    const ofHost = found.hosts.get(spec.hostname);
    return firstConflict(spec, [...found.kinds.values(), ...(ofHost === undefined ? [] : [ofHost])]);
  }

  add(spec: ListenerSpec): void {
    const port = portText(spec);
    const found = this.#ofPort.get(port) ?? { kinds: new Map(), hosts: new Map() };
    found.kinds.set(inWords(spec), spec);
    found.hosts.set(spec.hostname, spec);
    this.#ofPort.set(port, found);
  }
}

function portText(spec: ListenerSpec): string {
  return `${transportOf(spec)} ${spec.port}`;
}

interface Judged extends Pick<GatewayListener, 'parent' | 'section' | 'spec' | 'conflict'> {}

function judge(
  owner: { readonly namespace: string },
  { spec, conflict, ...judged }: Judged,
  tls: ListenerCertificates | undefined,
): GatewayListener {
  const known = KINDS[spec.protocol] ?? [];
  const supportedKinds = known
    .map((kind): GroupKind => ({ group: GATEWAY_GROUP, kind }))
    .filter((each) => spec.kinds.length === 0 || spec.kinds.some((kind) => isSameKind(kind, each)));
  const unknown = spec.kinds.find((kind) => !supportedKinds.some((each) => isSameKind(kind, each)));
  const kindFault = unknown && {
    reason: 'InvalidRouteKinds',
    message: `allowedRoutes has kind ${quote(unknown.kind)}; a listener of protocol ${spec.protocol} takes ${known.join(', ') || 'none'}`,
  };
  return {
    ...judged,
    namespace: owner.namespace,
    spec,
    host: hostPattern(spec.hostname, 'labels'),
    supportedKinds: supportedKinds,
    conflict,
    notAccepted: conflict ?? protocolFault(spec) ?? tls?.notAccepted,
    unresolved: kindFault ?? tls?.unresolved,
    hasCertificates: tls !== undefined && tls.certificates.length > 0,
    overlaps: false,
  };
}

function isSameKind(a: GroupKind, b: GroupKind): boolean {
  return a.group === b.group && a.kind === b.kind;
}

function protocolFault({ protocol, tls }: ListenerSpec): RefusalReason | undefined {
  if (KINDS[protocol] === undefined) {
    const message = `Protocol ${quote(protocol)} is not one of ${Object.keys(KINDS).join(', ')}`;
    return { reason: 'UnsupportedProtocol', message };
  }
  if (protocol === 'HTTPS' && tls?.mode === 'Passthrough')
    return {
      reason: 'UnsupportedValue',
      message: 'A listener of protocol HTTPS cannot have tls.mode Passthrough; use protocol TLS',
    };
  return undefined;
}

/** Why a listener and one of `others` cannot both be served; undefined if they can. */
function firstConflict(spec: ListenerSpec, others: readonly ListenerSpec[]): RefusalReason | undefined {
  for (const other of others) {
    const fault = conflictOf(spec, other);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function conflictOf(a: ListenerSpec, b: ListenerSpec): RefusalReason | undefined {
  if (KINDS[a.protocol] === undefined || KINDS[b.protocol] === undefined) return undefined;
  if (a.port !== b.port || transportOf(a) !== transportOf(b)) return undefined;
  const isSameHost = a.hostname === b.hostname;
  if (inWords(a) !== inWords(b) && (isSameHost || !canShare(a, b))) {
    const hosts = isSameHost && canShare(a, b) ? ' for the same host' : '';
    const message = `Port ${a.port} cannot have ${inWords(a)} and ${inWords(b)}${hosts} (listener "${b.name}")`;
    return { reason: 'ProtocolConflict', message };
  }
  if (!isSameHost) return undefined;
  if (a.protocol === 'TCP' || a.protocol === 'UDP')
    return {
      reason: 'ProtocolConflict',
      message: `Port ${a.port} has another listener of protocol ${a.protocol}, "${b.name}"`,
    };
  const hosts = a.hostname === '' ? 'all hosts' : `host ${quote(a.hostname)}`;
  return {
    reason: 'HostnameConflict',
    message: `Listener "${b.name}" has ${hosts} on port ${a.port}, too`,
  };
}

/** TLS of some hosts can be passed through where that of others is ended, as the handshake names the host. */
function canShare(a: ListenerSpec, b: ListenerSpec): boolean {
  return (isPassedThrough(a) && endsTls(b)) || (endsTls(a) && isPassedThrough(b));
}

export function isPassedThrough({ protocol, tls }: ListenerSpec): boolean {
  return protocol === 'TLS' && tls?.mode === 'Passthrough';
}

function inWords({ protocol, tls }: ListenerSpec): string {
  return protocol === 'TLS' ? `protocol TLS in mode ${tls?.mode ?? 'Terminate'}` : `protocol ${protocol}`;
}

/** Listeners with TLS that share a name with a wider one of their port. */
function overlappingOf(listeners: readonly GatewayListener[]): ReadonlySet<GatewayListener> {
  const wide = new Map<string, GatewayListener>();
  const ofTls = listeners.filter(({ spec, conflict }) => endsTls(spec) && conflict === undefined);
  const place = ({ port }: ListenerSpec, suffix: string) => `${port} ${suffix}`;
  for (const each of ofTls)
    if (each.host.kind !== 'exact') wide.set(place(each.spec, each.host.suffix), each);
  const overlapping = new Set<GatewayListener>();
  for (const each of ofTls) {
    let { suffix } = each.host;
    while (suffix !== '') {
      suffix = parentDomain(suffix);
      const wider = wide.get(place(each.spec, suffix));
      if (wider !== undefined) overlapping.add(each).add(wider);
    }
  }
  return overlapping;
}

/** `example.org` of `api.example.org`; '' of a name with one label. */
function parentDomain(name: string): string {
  const dot = name.indexOf('.');
  return dot < 0 ? '' : name.slice(dot + 1);
}

/** The labels of a Namespace; undefined if it is not known. */
export type LabelsOf = (namespace: string) => Readonly<Record<string, string>> | undefined;

/** True if objects of `namespace` may attach to what an object of `own` has. */
export function allowsNamespace(
  { from, selector }: NamespaceRule,
  own: string,
  namespace: string,
  labelsOf: LabelsOf,
): boolean {
  if (from === 'All') return true;
  if (from === 'Same') return namespace === own;
  if (from === 'None') return false;
  const labels = labelsOf(namespace);
  return labels !== undefined && matches(selector, labels);
}
