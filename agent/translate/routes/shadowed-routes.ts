// Matches of routes that never get a request, because an older HTTPRoute or Ingress has the same one. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import { oneSpelling } from '../../base/one-spelling.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { HostRoutes, RouteEntry } from '../../model/routes.ts';
import { hostText } from './host-pattern.ts';
import { isNothingElse } from './nothing-else.ts';

export const shadowedRoutes = memoByIdentity(({ host, entries }: HostRoutes): readonly Problem[] => {
  const winners = new Map<string, RouteEntry>();
  return entries.flatMap((entry): readonly Problem[] => {
    const { match, rule } = entry;
    const { kind, value, length } = match.path;
    // Its path is named by the entry that it stands beside.
    if (kind === 'regex' && length !== undefined) return [];
    const key = JSON.stringify({
      ...match,
      path: { kind, value: kind === 'regex' ? value : oneSpelling(value) },
    });
    const winner = winners.get(key);
    if (winner === undefined) winners.set(key, entry);
    if (winner === undefined || winner.rule.route === rule.route || isNothingElse(rule)) return [];
    const path = kind === 'prefix' ? value || '/' : value;
    const message = `Path "${path}" of host "${hostText(host)}" gets no request: the older ${winner.rule.route} has the same one`;
    return [{ object: rule.route, reason: 'RouteShadowed', message }];
  });
});
