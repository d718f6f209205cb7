// With the setting `hostsOfOneNamespace` a host of a Gateway belongs to the namespace whose route had it first, as with
// Ingresses: routes of other namespaces do not get it, on none of the Gateway's listeners, nor what the owner's routes do not
// match, and no listener of a ListenerSet takes it away. Pure.

import type { ListenerSet } from '../../kubernetes/gateway/gateway-objects.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import { hostKey, hostText, widerKeys } from '../routes/host-pattern.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import { nothingElse } from '../routes/nothing-else.ts';
import type { HostedRoute } from '../routes/section-hosts.ts';
import type { GatewayListener } from './listeners.ts';
import { type Rejection, withoutRejected } from './rejected-routes.ts';
import type { AttachedRoute, RoutePortion } from './route-portions.ts';

export interface OwnedRoutes {
  readonly routes: readonly RoutePortion[];
  readonly listeners: readonly GatewayListener[];
}

/** Routes without hosts have those of their listeners; TCPRoutes and UDPRoutes have none. */
export function hostsOfOneNamespace(
  portions: readonly RoutePortion[],
  listeners: readonly GatewayListener[],
  sets: readonly ListenerSet[],
): OwnedRoutes {
  const lost = lostListeners(portions, listeners, sets);
  const left = withoutRejected(portions, placesAt(lost, portions));
  return {
    routes: withoutRejected(left, rejectedPlaces(left)),
    listeners: listeners.map((listener) => {
      const conflict = lost.get(listener);
      return conflict === undefined ? listener : { ...listener, conflict, notAccepted: conflict };
    }),
  };
}

/** The routes of a section, with the end of each host whose wider one is of another namespace. */
export function withEnds(places: readonly AttachedRoute[]): readonly HostedRoute[] {
  const first = new Map<
    string,
    { readonly place: AttachedRoute; readonly at: AttachedRoute['hosts'][number] }
  >();
  for (const place of places)
    for (const at of place.hosts) {
      const found = first.get(at.key);
      if (found === undefined || byPrecedence(place.route, found.place.route) < 0)
        first.set(at.key, { place, at });
    }
  const ends = Array.from(first.values()).flatMap(({ place, at }) => {
    const wider = widerKeys(at.host).find((key) => first.has(key));
    const other = wider === undefined ? undefined : first.get(wider)?.place.route.namespace;
    return other === undefined || other === place.route.namespace ? [] : [endOf(place, at)];
  });
  return ends.length === 0 ? places : [...places, ...ends];
}

const known = new WeakMap<AttachedRoute, Map<string, HostedRoute>>();

function endOf(place: AttachedRoute, at: AttachedRoute['hosts'][number]): HostedRoute {
  const ofPlace = known.get(place) ?? new Map<string, HostedRoute>();
  known.set(place, ofPlace);
  const { kind, key } = place.route;
  const end = ofPlace.get(at.key) ?? {
    entries: nothingElse(place.entries, `${kind} ${key}`),
    hosts: [at],
  };
  ofPlace.set(at.key, end);
  return end;
}

/**
 * Requests belong to the listener with the most specific host: one of a ListenerSet would take those of an older route that
 * another namespace has at a wider listener.
 */
function lostListeners(
  portions: readonly RoutePortion[],
  listeners: readonly GatewayListener[],
  sets: readonly ListenerSet[],
): ReadonlyMap<GatewayListener, RefusalReason> {
  const setOf = new Map<string, ListenerSet>(sets.map((set) => [`listenerset ${set.key}`, set]));
  const byHost = Map.groupBy(
    listeners.filter(
      ({ parent, host, notAccepted }) =>
        setOf.has(parent) && host.kind !== 'any' && notAccepted === undefined,
    ),
    ({ host }) => hostKey(host),
  );
  const lost = new Map<GatewayListener, RefusalReason>();
  if (byHost.size === 0) return lost;
  const oldest = new Map<GatewayListener, AttachedRoute['route']>();
  for (const { route, hosts, listener: at } of placesOf(portions))
    for (const { host, key } of hosts)
      for (const listener of [key, ...widerKeys(host)].flatMap((each) => byHost.get(each) ?? [])) {
        const set = setOf.get(listener.parent);
        const isOfSets = setOf.has(at.parent) && at.namespace === listener.namespace;
        if (set === undefined || isOfSets || route.namespace === set.namespace) continue;
        if (byPrecedence(route, oldest.get(listener) ?? set) >= 0) continue;
        oldest.set(listener, route);
        lost.set(listener, conflictOf(route.namespace, hostText(host)));
      }
  return lost;
}

function placesAt(
  lost: ReadonlyMap<GatewayListener, RefusalReason>,
  portions: readonly RoutePortion[],
): ReadonlyMap<AttachedRoute, Rejection> {
  const rejected = new Map<AttachedRoute, Rejection>();
  if (lost.size === 0) return rejected;
  for (const place of placesOf(portions)) {
    const fault = lost.get(place.listener);
    if (fault !== undefined) rejected.set(place, { fault, hosts: [] });
  }
  return rejected;
}

function conflictOf(owner: string, hosts: string): RefusalReason {
  const message = `An older route of namespace "${owner}" has host "${hosts}", and each host belongs to one namespace (setting hostsOfOneNamespace)`;
  return { reason: 'HostnameConflict', message };
}

function rejectedPlaces(portions: readonly RoutePortion[]): ReadonlyMap<AttachedRoute, Rejection> {
  const rejected = new Map<AttachedRoute, Rejection>();
  const contested = contestedHosts(portions);
  if (contested.size === 0) return rejected;
  const owners = ownersOf(contested, portions);
  for (const place of placesOf(portions)) {
    const { route, hosts } = place;
    const left = hosts.filter(({ key }) => (owners.get(key) ?? route.namespace) === route.namespace);
    const [lost, ...others] = hosts.filter((host) => !left.includes(host));
    if (lost === undefined) continue;
    const owner = owners.get(lost.key);
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
    const message = `An older route of namespace "${owner}" has host "${hostText(lost.host)}"${more}, and each host belongs to one namespace (setting hostsOfOneNamespace)`;
    rejected.set(place, { fault: { reason: 'HostnameConflict', message }, hosts: left });
  }
  return rejected;
}

function* placesOf(portions: readonly RoutePortion[]): Generator<AttachedRoute, void, void> {
  for (const portion of portions)
    for (const { route, places } of portion)
      if (route.kind !== 'TCPRoute' && route.kind !== 'UDPRoute') yield* places;
}

/** Keys of the hosts that several namespaces have. */
function contestedHosts(portions: readonly RoutePortion[]): ReadonlySet<string> {
  const namespaces = new Map<string, string>();
  const contested = new Set<string>();
  for (const { route, hosts } of placesOf(portions))
    for (const { key } of hosts) {
      const known = namespaces.get(key) ?? route.namespace;
      if (known === route.namespace) namespaces.set(key, known);
      else contested.add(key);
    }
  return contested;
}

/** Key of a host → the namespace of its oldest route. */
function ownersOf(
  contested: ReadonlySet<string>,
  portions: readonly RoutePortion[],
): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  const concerned = Array.from(placesOf(portions)).filter(({ hosts }) =>
    hosts.some(({ key }) => contested.has(key)),
  );
  for (const { route, hosts } of concerned.sort((a, b) => byPrecedence(a.route, b.route)))
    for (const { key } of hosts) if (contested.has(key) && !owners.has(key)) owners.set(key, route.namespace);
  return owners;
}
