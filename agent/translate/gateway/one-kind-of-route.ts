// HTTPRoutes and GRPCRoutes on one listener: of two with a host in common the older one is accepted, the other one is not
// (https://gateway-api.sigs.k8s.io/reference/spec/#grpcroutespec). Pure.

import type { RefusalReason } from '../../model/object-status.ts';
import type { HostPattern } from '../../model/routes.ts';
import { hostText } from '../routes/host-pattern.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import { type Rejection, withoutRejected } from './rejected-routes.ts';
import {
  type AttachedRoute,
  type RoutePortion,
  type RoutesByListener,
  routesByListener,
} from './route-portions.ts';

/**
 * `isShared`: namespaces share hosts; otherwise each has its own, and a wider host of another one takes nothing from it. The routes without the places of those that are rejected, with the statuses that say so; the same list if there are none.
 */
export function ofOneKind(portions: readonly RoutePortion[], isShared: boolean): readonly RoutePortion[] {
  return withoutRejected(portions, rejectedPlaces(routesByListener(portions), isShared));
}

function rejectedPlaces(places: RoutesByListener, isShared: boolean): ReadonlyMap<AttachedRoute, Rejection> {
  const rejected = new Map<AttachedRoute, Rejection>();
  for (const ofListener of places.values()) {
    const isMixed = ofListener.some(isGrpc) && !ofListener.every(isGrpc);
    if (!isMixed) continue;
    const byNamespace = new Map<string, { readonly HTTPRoute: Hosts; readonly GRPCRoute: Hosts }>();
    for (const place of ofListener.toSorted((a, b) => byPrecedence(a.route, b.route))) {
      const namespace = isShared ? '' : place.route.namespace;
      const accepted = byNamespace.get(namespace) ?? { HTTPRoute: new Hosts(), GRPCRoute: new Hosts() };
      byNamespace.set(namespace, accepted);
      const isOfGrpc = isGrpc(place);
      const others = isOfGrpc ? accepted.HTTPRoute : accepted.GRPCRoute;
      const common = place.hosts.find(({ host }) => others.haveCommon(host));
      if (common === undefined)
        for (const { host } of place.hosts) accepted[isOfGrpc ? 'GRPCRoute' : 'HTTPRoute'].add(host);
      else
        rejected.set(place, {
          fault: faultOf(isOfGrpc ? 'HTTPRoute' : 'GRPCRoute', common.host),
          hosts: [],
        });
    }
  }
  return rejected;
}

function isGrpc({ route }: AttachedRoute): boolean {
  return route.kind === 'GRPCRoute';
}

function faultOf(kind: string, host: HostPattern): RefusalReason {
  const message = `An older ${kind} of the listener has hosts in common with "${hostText(host)}": of a HTTPRoute and a GRPCRoute only one is accepted`;
  return { reason: 'HostnameConflict', message };
}

/** Hosts, to ask whether another one has any in common. */
class Hosts {
  #hasAny = false;
  readonly #exact = new Set<string>();
  readonly #wild = new Set<string>();
  /** What follows a dot in one of them, and the wildcards themselves. */
  readonly #ends = new Set<string>();

  add({ kind, suffix }: HostPattern): void {
    if (kind === 'any') this.#hasAny = true;
    else if (kind === 'exact') this.#exact.add(suffix);
    else {
      this.#wild.add(suffix);
      this.#ends.add(suffix);
    }
    for (const parent of parentsOf(suffix)) this.#ends.add(parent);
  }

  haveCommon({ kind, suffix }: HostPattern): boolean {
    if (this.#hasAny) return true;
    if (kind === 'any') return this.#exact.size + this.#wild.size > 0;
    const isBelow = parentsOf(suffix).some((parent) => this.#wild.has(parent));
    return isBelow || (kind === 'exact' ? this.#exact.has(suffix) : this.#ends.has(suffix));
  }
}

function parentsOf(host: string): readonly string[] {
  return Array.from(host.matchAll(/\./g), ({ index }) => host.slice(index + 1));
}
