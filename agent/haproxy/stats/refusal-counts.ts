// What each check of a listener with routes, or of a route, has refused: counters of a worker's stick tables (agent/haproxy/routes/
// refusals.ts). A check has numbers like those of `show stat`, of which one counts.

import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import {
  checksOfListener,
  checksOfRule,
  REFUSING_CHECKS,
  ROUTE_CHECKS,
  STATUS_CLASSES,
  UNREAD,
} from '../routes/refusals.ts';
import { allColumns, positionOf } from './columns.ts';
import type { StatRow } from './stat-rows.ts';

/** In a row of a check of a listener, the name of the proxy. */
export const REFUSALS = 'headgate:refusals';
/** The same in rows of checks of routes, whose counters are in the table of routes. */
export const ROUTE_REFUSALS = 'headgate:refusals-of-routes';

/** The column that counts. */
export const REFUSED = positionOf('stot');

/** `name`: that of the listener; `counts` in the order of the table's counters. */
export function refusalRows(name: string, counts: readonly number[]): readonly StatRow[] {
  return rowsOf(REFUSALS, name, REFUSING_CHECKS, counts.slice(UNREAD));
}

/** `name`: that of the route. */
export function routeRefusalRows(name: string, counts: readonly number[]): readonly StatRow[] {
  return rowsOf(ROUTE_REFUSALS, name, ROUTE_CHECKS, counts.slice(STATUS_CLASSES));
}

/** None for a check that has not refused. */
function rowsOf(
  proxy: string,
  of: string,
  checks: readonly string[],
  counts: readonly number[],
): readonly StatRow[] {
  return checks.flatMap((check, at) => {
    const values = allColumns.map(() => Number.NaN);
    values[REFUSED] = counts[at] ?? 0;
    if (values[REFUSED] === 0) return [];
    return [{ proxy, name: checkName(of, check), values, status: '', checkStatus: '', mode: 'http' }];
  });
}

/** The name of a row: no name of a listener or route has a bar. */
export function checkName(of: string, check: string): string {
  return `${of}|${check}`;
}

/** The checks of a load balancer that may refuse: by the name of the listener, and by that of the route. */
export interface CheckNames {
  readonly listeners: readonly (readonly [listener: Listener, checks: readonly string[]])[];
  readonly routes: ReadonlyMap<string, ReadonlySet<string>>;
}

export function refusingChecks({ listeners }: LoadBalancer): CheckNames {
  const routes = new Map<string, Set<string>>();
  const ofListeners = listeners.flatMap((listener): CheckNames['listeners'] => {
    const { routing } = listener;
    if (routing?.kind !== 'http') return [];
    const checks = new Set(checksOfListener(listener));
    for (const { hosts } of routing.sections)
      for (const { entries } of hosts)
        for (const { rule } of entries) {
          const name = rule.route.replace(' ', '/');
          const own = routes.get(name) ?? new Set();
          routes.set(name, own);
          for (const check of checksOfRule(rule)) {
            own.add(check);
            checks.add(check);
          }
        }
    return [[listener, [...checks]]];
  });
  return { listeners: ofListeners, routes };
}

export function checkLabel(name: string): string {
  return `check="${name.slice(name.indexOf('|') + 1)}"`;
}
