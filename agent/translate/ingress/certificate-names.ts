// The name in certificates that a host asks for holds for all of its paths, also for those of Ingresses that do not ask, as in
// ingress-nginx. Pure; the same value for the same routes and name.

import type { RouteEntries } from '../routes/host-routes.ts';

const known = new WeakMap<RouteEntries, Map<string, RouteEntries>>();

/** `name`: undefined for none. A rule that asks for a name itself keeps it. */
export function withName(routes: RouteEntries, name: string | undefined): RouteEntries {
  if (name === undefined) return routes;
  const byName = known.get(routes) ?? new Map<string, RouteEntries>();
  known.set(routes, byName);
  const named =
    byName.get(name) ??
    ({
      ...routes,
      entries: routes.entries.map((entry) =>
        entry.rule.certificateName === undefined
          ? { ...entry, rule: { ...entry.rule, certificateName: name } }
          : entry,
      ),
    } satisfies RouteEntries);
  byName.set(name, named);
  return named;
}
