// Gives canaries their part of the requests of other Ingresses, as ingress-nginx does: by weight, or by a header. Pure.

import type { RouteEntry, RouteMatch } from '../../model/routes.ts';
import type { RouteEntries } from '../routes/host-routes.ts';
import type { Canary } from './ingress-rules.ts';

/** The same value if no canary has one of its paths on this host. */
export function withCanaries(host: string, routes: RouteEntries, canaries: readonly Canary[]): RouteEntries {
  const ofHost = canaries.filter((canary) => canary.host === host);
  if (ofHost.length === 0) return routes;
  let isChanged = false;
  const entries = routes.entries.flatMap((entry): readonly RouteEntry[] => {
    const canary = ofHost.find(({ match }) => isSamePath(match, entry.match));
    const { action } = entry.rule;
    if (canary === undefined || action.kind !== 'forward') return [entry];
    isChanged = true;
    const { match, rule, weight, total } = canary;
    const own = Math.min(weight, total);
    const shared = {
      ...action,
      backends: [
        ...action.backends.map((backend) => ({ ...backend, weight: total - own })),
        ...rule.action.backends.map((backend) => ({ ...backend, weight: own })),
      ],
    };
    const byWeight = own === 0 ? entry : { ...entry, rule: { ...entry.rule, action: shared } };
    // A match with more headers comes first.
    if (match.headers.length === 0) return [byWeight];
    // A canary is no way around what the Ingress asks of its clients.
    const { limits = entry.rule.limits, auth = entry.rule.auth } = rule;
    return [{ match, rule: { ...rule, limits, auth } }, byWeight];
  });
  return isChanged ? { ...routes, entries } : routes;
}

function isSamePath({ path: a }: RouteMatch, { path: b }: RouteMatch): boolean {
  return a.kind === b.kind && a.value === b.value;
}
