// What a rule of a route asks of its clients: the one list of it, by which places that compare rules cannot forget a guard. Pure.

import type { RouteRule } from './routes.ts';

export type RouteGuards = Pick<RouteRule, 'limits' | 'certificateName' | 'auth' | 'jwt' | 'externalAuth'>;

/** In one order: equal guards have equal texts. */
export function routeGuards({ limits, certificateName, auth, jwt, externalAuth }: RouteGuards): RouteGuards {
  return { limits, certificateName, auth, jwt, externalAuth };
}

export function isGuarded(rule: RouteGuards): boolean {
  return Object.values(routeGuards(rule)).some((each) => each !== undefined);
}

/** Members, or another host, get the requests of all clients. */
export function isOpen(rule: RouteRule): boolean {
  return rule.action.kind !== 'answer' && !isGuarded(rule);
}
