// What follows from all routes of a Gateway, made portion by portion: of a portion none of whose routes changed it is kept, so
// that the change of one route among thousands costs little. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import type { Route } from '../../kubernetes/gateway/route-objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { OwnerKey, Problem } from '../../model/load-balancer.ts';
import type { RouteStatus } from '../../model/object-status.ts';
import type { PoolUse } from '../../model/pool-uses.ts';
import type { TokenRoute } from '../routes/route-tokens.ts';
import type { AuthRoute } from '../routes/route-users.ts';
import type { HostedRoute } from '../routes/section-hosts.ts';
import type { RouteAttachment } from './attachment.ts';
import { Reads } from './gateway-view.ts';
import type { GatewayListener } from './listeners.ts';
import type { ResolvedRoute } from './resolved-route.ts';

/** A route that names the Gateway, or one of its ListenerSets; the same value while nothing of it changes. */
export interface RouteOnGateway {
  readonly route: Route;
  readonly attached: RouteAttachment;
  readonly resolved: ResolvedRoute;
  readonly status: RouteStatus;
  /** The listeners that look at it; one that cannot be carried out keeps its matches, which answer 500. */
  readonly places: readonly AttachedRoute[];
  /** Why listeners reject it that would have it otherwise, a sentence each. */
  readonly rejections?: readonly string[];
}

export interface AttachedRoute extends HostedRoute {
  readonly listener: GatewayListener;
  readonly route: Route;
  readonly resolved: ResolvedRoute;
}

export type RoutesByListener = ReadonlyMap<GatewayListener, readonly AttachedRoute[]>;

/** Routes that are beside one another in the store; the same value while none of them changes. */
export type RoutePortion = readonly RouteOnGateway[];

/** The objects that the routes of a portion are made from. */
export const readsOf = memoByIdentity(
  (portion: RoutePortion): Reads => Reads.joined(portion.map(({ resolved }) => resolved.reads)),
);

export function dependenciesOf(portions: readonly RoutePortion[]): ReadonlySet<Dependency> {
  return new Set(portions.flatMap((portion) => readsOf(portion).dependencies()));
}

export function routesByListener(portions: readonly RoutePortion[]): RoutesByListener {
  const found = new Map<GatewayListener, AttachedRoute[]>();
  for (const portion of portions)
    for (const [listener, places] of placesOf(portion)) {
      const others = found.get(listener);
      if (others === undefined) found.set(listener, [...places]);
      else for (const place of places) others.push(place);
    }
  return found;
}

const placesOf = memoByIdentity(
  (portion: RoutePortion): RoutesByListener =>
    Map.groupBy(
      portion.flatMap(({ places }) => places),
      ({ listener }) => listener,
    ),
);

/** Each once. */
export function poolsOf(portions: readonly RoutePortion[]): readonly PoolUse[] {
  return unique(portions.flatMap(poolsOfPortion));
}

const poolsOfPortion = memoByIdentity((portion: RoutePortion): readonly PoolUse[] =>
  unique(portion.filter(({ places }) => places.length > 0).flatMap(({ resolved }) => resolved.uses)),
);

function unique(all: readonly PoolUse[]): readonly PoolUse[] {
  const uses = new Map<OwnerKey, Map<number, PoolUse>>();
  for (const use of all) {
    const ofPool = uses.get(use.pool);
    if (ofPool === undefined) uses.set(use.pool, new Map([[use.port, use]]));
    else ofPool.set(use.port, use);
  }
  return [...uses.values()].flatMap((ofPool) => [...ofPool.values()]);
}

export function statusesOf(portions: readonly RoutePortion[]): readonly RouteStatus[] {
  return portions.flatMap(statusesOfPortion);
}

const statusesOfPortion = memoByIdentity((portion: RoutePortion) => portion.map(({ status }) => status));

/** Problems of annotations, of listeners that reject the route, and of what its status says is not served. */
export function problemsOf(portions: readonly RoutePortion[]): readonly Problem[] {
  return portions.flatMap(problemsOfPortion);
}

const problemsOfPortion = memoByIdentity((portion: RoutePortion): readonly Problem[] =>
  portion.flatMap(({ route: { kind, key }, resolved, status, rejections = [] }) => {
    const object = `${kind} ${key}`;
    return [
      ...resolved.annotationFaults.map((message) => ({
        object,
        reason: 'InvalidAnnotation' as const,
        message,
      })),
      ...unservedOf(status, rejections).map((message) => ({
        object,
        reason: 'InvalidRoute' as const,
        message,
      })),
      ...rejections.map((message) => ({ object, reason: 'RouteShadowed' as const, message })),
    ];
  }),
);

/** Each reason once, whatever parents it holds for; a rejection is reported with the listener that rejects. */
function unservedOf({ parents }: RouteStatus, rejections: readonly string[]): readonly string[] {
  const faults = parents.flatMap(({ conditions }) =>
    conditions.filter(({ type, status }) => status === (type === 'PartiallyInvalid' ? 'True' : 'False')),
  );
  const others = faults.filter(({ message }) => !rejections.some((each) => each.endsWith(message)));
  return [...new Set(others.map(({ reason, message }) => `Cannot serve all of it (${reason}): ${message}`))];
}

/** A route asks a service whether requests are let in. */
export function asksServers(portions: readonly RoutePortion[]): boolean {
  return portions.some(portionAsks);
}

const portionAsks = memoByIdentity((portion: RoutePortion): boolean =>
  portion.some(({ resolved }) =>
    resolved.entries.entries.some(({ rule }) => rule.externalAuth !== undefined),
  ),
);

/** Routes whose users must have a password. */
export function authRoutesOf(portions: readonly RoutePortion[]): readonly AuthRoute[] {
  return portions.flatMap(authRoutesOfPortion);
}

const authRoutesOfPortion = memoByIdentity((portion: RoutePortion): readonly AuthRoute[] =>
  portion.flatMap(({ route, places, resolved }) => {
    const isAsked = resolved.usersSecret !== '' && places.length > 0;
    return isAsked ? [{ object: `${route.kind} ${route.key}`, secret: resolved.usersSecret }] : [];
  }),
);

/** Routes whose clients must have a token. */
export function tokenRoutesOf(portions: readonly RoutePortion[]): readonly TokenRoute[] {
  return portions.flatMap(tokenRoutesOfPortion);
}

const tokenRoutesOfPortion = memoByIdentity((portion: RoutePortion): readonly TokenRoute[] =>
  portion.flatMap(({ route, places, resolved }) => {
    const isAsked = resolved.tokenKeys !== '' && places.length > 0;
    return isAsked ? [{ object: `${route.kind} ${route.key}`, keys: resolved.tokenKeys }] : [];
  }),
);
