// HTTPRoutes and GRPCRoutes on one listener: of two with a host in common the older one is accepted, the other one is not
// (https://gateway-api.sigs.k8s.io/reference/spec/#grpcroutespec). Pure.

import type { HostPattern } from '../../model/routes.ts';
import { hostText } from '../routes/host-pattern.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import type { Fault } from './conditions.ts';
import type { GatewayListener } from './listeners.ts';
import {
  type PlacesByListener,
  placesByListener,
  type RouteOnGateway,
  type RoutePlace,
  type RoutePortion,
} from './route-portions.ts';
import { routeStatus } from './route-status.ts';

/** The routes without the places of those that are rejected, with the statuses that say so; the same list if there are none. */
export function ofOneKind(portions: readonly RoutePortion[]): readonly RoutePortion[] {
  const rejected = rejectedPlaces(placesByListener(portions));
  if (rejected.size === 0) return portions;
  return portions.map((portion) => {
    const isConcerned = portion.some(({ places }) => places.some((place) => rejected.has(place)));
    return isConcerned ? withoutRejected(portion, rejected) : portion;
  });
}

/** So that a portion keeps its identity, too. */
const changed = new WeakMap<RoutePortion, RoutePortion>();

function withoutRejected(portion: RoutePortion, rejected: ReadonlyMap<RoutePlace, Fault>): RoutePortion {
  const routes = portion.map((each) =>
    each.places.some((place) => rejected.has(place)) ? without(each, rejected) : each,
  );
  const before = changed.get(portion);
  if (before?.every((each, at) => each === routes[at])) return before;
  changed.set(portion, routes);
  return routes;
}

function rejectedPlaces(places: PlacesByListener): ReadonlyMap<RoutePlace, Fault> {
  const rejected = new Map<RoutePlace, Fault>();
  for (const ofListener of places.values()) {
    const isMixed = ofListener.some(isGrpc) && !ofListener.every(isGrpc);
    if (!isMixed) continue;
    const accepted = { HTTPRoute: new Hosts(), GRPCRoute: new Hosts() };
    for (const place of ofListener.toSorted((a, b) => byPrecedence(a.route, b.route))) {
      const isOfGrpc = isGrpc(place);
      const others = isOfGrpc ? accepted.HTTPRoute : accepted.GRPCRoute;
      const common = place.hosts.find(({ host }) => others.haveCommon(host));
      if (common === undefined)
        for (const { host } of place.hosts) accepted[isOfGrpc ? 'GRPCRoute' : 'HTTPRoute'].add(host);
      else rejected.set(place, faultOf(isOfGrpc ? 'HTTPRoute' : 'GRPCRoute', common.host));
    }
  }
  return rejected;
}

function isGrpc({ route }: RoutePlace): boolean {
  return route.kind === 'GRPCRoute';
}

function faultOf(kind: string, host: HostPattern): Fault {
  const message = `An older ${kind} of the listener has hosts in common with "${hostText(host)}": of a HTTPRoute and a GRPCRoute only one is accepted`;
  return { reason: 'HostnameConflict', message };
}

/** So that the status keeps its identity. */
const known = new WeakMap<RouteOnGateway, { readonly text: string; readonly value: RouteOnGateway }>();

function without(of: RouteOnGateway, rejected: ReadonlyMap<RoutePlace, Fault>): RouteOnGateway {
  const { route, attached, resolved, places } = of;
  const faults = new Map<GatewayListener, Fault>();
  for (const place of places) {
    const fault = rejected.get(place);
    if (fault !== undefined) faults.set(place.listener, fault);
  }
  const text = JSON.stringify(Array.from(faults, ([{ section }, { message }]) => [section, message]));
  const before = known.get(of);
  if (before?.text === text) return before.value;
  const parents = attached.parents.map((parent) => {
    const own = parent.listeners.map((listener) => faults.get(listener));
    // On other listeners of the reference it is served.
    const isRejected = parent.fault === undefined && own.length > 0 && !own.includes(undefined);
    return isRejected ? { ...parent, fault: own[0] } : parent;
  });
  const judged = { ...attached, parents };
  const value = {
    ...of,
    attached: judged,
    status: routeStatus(route, judged, resolved),
    places: places.filter((place) => !rejected.has(place)),
    rejections: Array.from(
      faults,
      ([{ section }, { message }]) => `Cannot attach to listener "${section}": ${message}`,
    ),
  };
  known.set(of, { text, value });
  return value;
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
