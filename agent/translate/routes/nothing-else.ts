// The end of a host that one namespace owns: status 404 for what its routes do not match, which otherwise a wider host gets, be it
// of another namespace. Pure.

import { answeringRule } from '../../model/answering-rule.ts';
import type { RouteRule } from '../../model/routes.ts';
import type { RouteEntries } from './host-routes.ts';

const ends = new WeakMap<RouteEntries, RouteEntries>();
const rules = new WeakSet<RouteRule>();

/** By the first routes of a host; the same value for the same routes. `route`: the object that they are of. */
export function nothingElse(routes: RouteEntries, route: string): RouteEntries {
  const known = ends.get(routes);
  if (known !== undefined) return known;
  const rule = answeringRule({ name: `${route}#404`, route }, 404);
  rules.add(rule);
  const match = { path: { kind: 'prefix' as const, value: '' }, method: '', headers: [], query: [] };
  const end = { created: Number.POSITIVE_INFINITY, key: `~~${routes.key}`, entries: [{ match, rule }] };
  ends.set(routes, end);
  return end;
}

/** True for what no author wrote. */
export function isNothingElse(rule: RouteRule): boolean {
  return rules.has(rule);
}
