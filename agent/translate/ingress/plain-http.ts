// What port 80 does with the requests of a host: it serves them, sends clients to https, or refuses what needs a client
// certificate. Pure; the same value for the same routes.

import { CLOSED } from '../../model/answering-rule.ts';
import type { RedirectAction, RouteEntry, RouteRule } from '../../model/routes.ts';
import type { RouteEntries } from '../routes/host-routes.ts';

/** The path of ACME's HTTP-01 (RFC 8555, section 8.3), by which a host gets its first certificate, and the next one. */
const CHALLENGES = '/.well-known/acme-challenge';

export const TO_HTTPS: RedirectAction = {
  kind: 'redirect',
  status: 308,
  scheme: 'https',
  hostname: '',
  port: 0,
  path: undefined,
};

/** All but challenges. */
export const redirected = memoOfEntries(({ match, rule: { name, route } }) =>
  isOfChallenges(match.path.value)
    ? undefined
    : {
        name,
        route,
        action: TO_HTTPS,
        cors: undefined,
        responseHeaders: undefined,
        limits: undefined,
      },
);

/** 403 for all that is no redirect and no challenge. */
export const withoutContent = memoOfEntries(({ match, rule }) =>
  rule.action.kind === 'redirect' || isOfChallenges(match.path.value) ? undefined : refused(rule),
);

/** 403 for all but challenges. */
export const refusedInClear = memoOfEntries(({ match, rule }) =>
  isOfChallenges(match.path.value) ? undefined : refused(rule),
);

/** 403 for all. */
export const refusedAll = memoOfEntries(({ rule }) => refused(rule));

export function isOfChallenges(path: string): boolean {
  return path === CHALLENGES || path.startsWith(`${CHALLENGES}/`);
}

function refused(rule: RouteRule): RouteRule {
  return { ...rule, action: CLOSED, cors: undefined };
}

/** `change`: the rule that replaces an entry's; undefined: the entry stays. */
function memoOfEntries(
  change: (entry: RouteEntry) => RouteRule | undefined,
): (routes: RouteEntries) => RouteEntries {
  const known = new WeakMap<RouteEntries, RouteEntries>();
  return (routes) => {
    const plain =
      known.get(routes) ??
      ({
        ...routes,
        entries: routes.entries.map((entry) => ({ ...entry, rule: change(entry) ?? entry.rule })),
      } satisfies RouteEntries);
    known.set(routes, plain);
    return plain;
  };
}
