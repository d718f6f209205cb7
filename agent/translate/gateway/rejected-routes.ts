// Removes routes that a listener rejects because another route has the host; their status and their problems say so. Pure.

import type { RefusalReason } from '../../model/object-status.ts';
import type { AttachedHost } from './attachment.ts';
import type { GatewayListener } from './listeners.ts';
import type { AttachedRoute, RouteOnGateway, RoutePortion } from './route-portions.ts';
import { routeStatus } from './route-status.ts';

export interface Rejection {
  readonly fault: RefusalReason;
  /** The hosts that the listener takes all the same; empty: the route is not attached to it. */
  readonly hosts: readonly AttachedHost[];
}

export type Rejections = ReadonlyMap<AttachedRoute, Rejection>;

/** The same list if nothing is rejected; a portion, and a route, keeps its identity while the same is. */
export function withoutRejected(
  portions: readonly RoutePortion[],
  rejected: Rejections,
): readonly RoutePortion[] {
  if (rejected.size === 0) return portions;
  return portions.map((portion) => {
    const isConcerned = portion.some(({ places }) => places.some((place) => rejected.has(place)));
    return isConcerned ? changedPortion(portion, rejected) : portion;
  });
}

const changed = new WeakMap<RoutePortion, RoutePortion>();

function changedPortion(portion: RoutePortion, rejected: Rejections): RoutePortion {
  const routes = portion.map((each) =>
    each.places.some((place) => rejected.has(place)) ? without(each, rejected) : each,
  );
  const before = changed.get(portion);
  if (before?.every((each, at) => each === routes[at])) return before;
  changed.set(portion, routes);
  return routes;
}

const known = new WeakMap<RouteOnGateway, { readonly text: string; readonly value: RouteOnGateway }>();

function without(of: RouteOnGateway, rejected: Rejections): RouteOnGateway {
  const { route, attached, resolved, places } = of;
  const found = places.flatMap((place) => {
    const rejection = rejected.get(place);
    return rejection === undefined ? [] : [{ listener: place.listener, ...rejection }];
  });
  const text = JSON.stringify(
    found.map(({ listener, fault, hosts }) => [listener.section, fault.message, hosts.map(({ key }) => key)]),
  );
  const before = known.get(of);
  if (before?.text === text) return before.value;
  const whole = new Map<GatewayListener, RefusalReason>();
  for (const { listener, fault, hosts } of found) if (hosts.length === 0) whole.set(listener, fault);
  const parents = attached.parents.map((parent) => {
    const own = parent.listeners.map((listener) => whole.get(listener));
    // On other listeners of the reference it is served.
    const isRejected = parent.fault === undefined && own.length > 0 && !own.includes(undefined);
    return isRejected ? { ...parent, fault: own[0] } : parent;
  });
  const judged = { ...attached, parents };
  const value = {
    ...of,
    attached: judged,
    status: routeStatus(route, judged, resolved),
    places: places.flatMap((place) => {
      const hosts = rejected.get(place)?.hosts;
      if (hosts === undefined) return [place];
      return hosts.length === 0 ? [] : [{ ...place, hosts }];
    }),
    rejections: [
      ...(of.rejections ?? []),
      ...found.map(({ listener: { section }, fault, hosts }) =>
        hosts.length === 0
          ? `Cannot attach to listener "${section}": ${fault.message}`
          : `Cannot attach all hosts to listener "${section}": ${fault.message}`,
      ),
    ],
  };
  known.set(of, { text, value });
  return value;
}
