// With the setting `hostsOfOneNamespace` a host of a Gateway belongs to the namespace whose route had it first, as with
// Ingresses: routes of other namespaces do not get it, on none of the Gateway's listeners. Pure.

import { hostText } from '../routes/host-pattern.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import { type Rejection, withoutRejected } from './rejected-places.ts';
import type { RoutePlace, RoutePortion } from './route-portions.ts';

/** Of routes without hosts, too, which have those of their listeners; TCPRoutes and UDPRoutes have none. */
export function hostsOfOneNamespace(portions: readonly RoutePortion[]): readonly RoutePortion[] {
  return withoutRejected(portions, rejectedPlaces(portions));
}

function rejectedPlaces(portions: readonly RoutePortion[]): ReadonlyMap<RoutePlace, Rejection> {
  const rejected = new Map<RoutePlace, Rejection>();
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

function* placesOf(portions: readonly RoutePortion[]): Generator<RoutePlace, void, void> {
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
