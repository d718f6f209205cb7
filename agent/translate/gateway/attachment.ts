// To which listeners of a Gateway a route attaches, and with which hosts, for each of its references to the Gateway or to one of
// its ListenerSets. Pure.

import { nearestHint } from '../../base/nearest.ts';
import { quote } from '../../base/quote.ts';
import { GATEWAY_GROUP } from '../../kubernetes/gateway/names.ts';
import type { ParentReference, Route } from '../../kubernetes/gateway/route-objects.ts';
import type { RouteParent } from '../../model/desired-state.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type { HostPattern } from '../../model/routes.ts';
import { commonHosts, hostKey, hostPattern } from '../routes/host-pattern.ts';
import { allowsNamespace, type GatewayListener, type LabelsOf } from './listeners.ts';

/** A route on one listener. */
export interface Attachment {
  readonly listener: GatewayListener;
  /** Each once. */
  readonly hosts: readonly AttachedHost[];
}

export interface AttachedHost {
  readonly host: HostPattern;
  /** hostKey() of it. */
  readonly key: string;
}

/** One of the route's references that leads to the Gateway. */
export interface ParentAttachment {
  readonly reference: ParentReference;
  /** The listeners that it attaches to. */
  readonly listeners: readonly GatewayListener[];
  /** Why it is attached to none. */
  readonly fault: RefusalReason | undefined;
}

/** A route on a Gateway and its ListenerSets. */
export interface RouteAttachment {
  readonly parents: readonly ParentAttachment[];
  /** Each listener once, however many references lead to it. */
  readonly attachments: readonly Attachment[];
}

/** `listenersOf`: those of the Gateway and of its ListenerSets. */
export function attachRoute(
  route: Route,
  listenersOf: ReadonlyMap<RouteParent, readonly GatewayListener[]>,
  labelsOf: LabelsOf,
): RouteAttachment {
  const found = new Map<GatewayListener, Attachment>();
  const parents = route.parents.flatMap((reference): ParentAttachment[] => {
    const parent = parentOf(reference, route.namespace);
    const ofParent = parent && listenersOf.get(parent);
    if (ofParent === undefined) return [];
    const { attachments, fault } = attach(route, reference, ofParent, labelsOf);
    for (const attachment of attachments) found.set(attachment.listener, attachment);
    return [{ reference, listeners: attachments.map(({ listener }) => listener), fault }];
  });
  return { parents, attachments: [...found.values()] };
}

/** undefined if it is neither a Gateway nor a ListenerSet. */
export function parentOf(
  { group, kind, namespace, name }: ParentReference,
  ownNamespace: string,
): RouteParent | undefined {
  if (group !== GATEWAY_GROUP) return undefined;
  const key = `${namespace || ownNamespace}/${name}`;
  if (kind === 'Gateway') return `gateway ${key}`;
  return kind === 'ListenerSet' ? `listenerset ${key}` : undefined;
}

function attach(
  route: Route,
  { sectionName, port }: ParentReference,
  listeners: readonly GatewayListener[],
  labelsOf: LabelsOf,
): { readonly attachments: readonly Attachment[]; readonly fault: RefusalReason | undefined } {
  const none = (reason: string, message: string) => ({ attachments: [], fault: { reason, message } });
  const named = listeners.filter(
    ({ spec }) => (sectionName === '' || spec.name === sectionName) && (port === 0 || spec.port === port),
  );
  if (named.length === 0) {
    const wanted = [
      sectionName === '' ? '' : ` with name ${quote(sectionName)}`,
      port === 0 ? '' : ` on port ${port}`,
    ].join('');
    const hint = nearestHint(sectionName, [...new Set(listeners.map(({ spec }) => spec.name))]);
    return none('NoMatchingParent', `The parent has no listener${wanted}${sectionName === '' ? '' : hint}`);
  }
  const allowed = named.filter(
    ({ supportedKinds, spec, namespace }) =>
      supportedKinds.some(({ kind }) => kind === route.kind) &&
      allowsNamespace(spec.namespaces, namespace, route.namespace, labelsOf),
  );
  if (allowed.length === 0) {
    const message = `No listener allows ${route.kind}s of namespace "${route.namespace}": see its allowedRoutes and its protocol`;
    return none('NotAllowedByListeners', message);
  }
  const attachments = allowed.flatMap((listener) => {
    const hosts = hostsOn(route, listener);
    return hosts.length === 0 ? [] : [{ listener, hosts }];
  });
  if (attachments.length === 0)
    return none('NoMatchingListenerHostname', 'No listener has a host in common with spec.hostnames');
  return { attachments, fault: undefined };
}

/** Empty if route and listener have no host in common. */
function hostsOn(route: Route, { host }: GatewayListener): readonly AttachedHost[] {
  const hostnames = 'hostnames' in route ? route.hostnames : [];
  if (hostnames.length === 0) return [{ host, key: hostKey(host) }];
  const common = new Map<string, AttachedHost>();
  for (const hostname of hostnames) {
    const hosts = commonHosts(host, hostPattern(hostname, 'labels'));
    if (hosts === undefined) continue;
    const key = hostKey(hosts);
    common.set(key, { host: hosts, key });
  }
  return [...common.values()];
}
