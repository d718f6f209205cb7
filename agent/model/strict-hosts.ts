// Hosts some of whose paths are protected otherwise than the others: there a path that members could read otherwise than HAProxy
// would be a way around. Pure.

import { isOpen, routeGuards } from './route-guards.ts';
import type { RouteEntry, RouteRule } from './routes.ts';

/** `entries`: of one host. */
export function isStrict(entries: readonly RouteEntry[]): boolean {
  const [first] = entries;
  if (first === undefined) return false;
  const guards = new Set(entries.map(({ rule }) => guardOf(rule)));
  if (guards.size > 1) return true;
  // What none of its paths matches could be served by the routes of a wider hostname.
  const isForAll = entries.some(({ match }) => match.path.kind === 'prefix' && match.path.value === '');
  return !guards.has('') && !isForAll;
}

/** Equal for rules that let the same clients in; '' for all clients. */
function guardOf(rule: RouteRule): string {
  return isOpen(rule) ? '' : JSON.stringify([routeGuards(rule), rule.action.kind === 'answer']);
}
