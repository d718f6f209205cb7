// The checks of `headgate why` that end a request in the rules of routes, and the words that count each where it does. They cost
// nothing where it does not: HAProxy looks at them behind the conditions that refuse. Pure.
// Why: docs/design/decisions/0108-refusals-count-themselves.md

import type { View } from '../../base/template.ts';
import type { Listener } from '../../model/load-balancer.ts';
import { refusalTable } from '../../model/names.ts';
import type { ForwardAction, RouteRule } from '../../model/routes.ts';

/** The checks that a rule of a route asks for, in the order of their counters: a new one comes last, because counts outlive agents. */
const OF_RULES = {
  byRouteRanges: 'source ranges of route',
  byCertificateName: 'name in certificate',
  byRate: 'request rate',
  byBody: 'body',
  byRewrittenPath: 'rewritten path',
  byUser: 'user',
  byToken: 'token',
  byAuthorization: 'authorization',
  byAnswer: 'answer',
  byPoolClients: 'clients of members',
} as const;

/** The checks that HAProxy makes before it knows the route, likewise. */
const OF_LISTENERS = {
  byShare: 'share of namespace',
  byRanges: 'source ranges',
  byConnectionRate: 'connection rate',
  byCertificate: 'client certificate',
  byPath: 'path',
  byHost: 'host',
  byHostCertificate: 'certificate of host',
  byAmbiguousPath: 'ambiguous path',
  byRoute: 'route',
} as const;

type Key = keyof typeof OF_RULES | keyof typeof OF_LISTENERS;

/** In the order of their counters. */
export const ROUTE_CHECKS: readonly string[] = Object.values(OF_RULES);
export const REFUSING_CHECKS: readonly string[] = [...ROUTE_CHECKS, ...Object.values(OF_LISTENERS)];

/** Counters of a route in front of those of its checks: the classes of status. */
export const STATUS_CLASSES = 5;

/** Counters of a listener in front of those of its checks: the rule of a minute's requests counts in the first that it meets. */
export const UNREAD = 1;

const KEYS = [...Object.keys(OF_RULES), ...Object.keys(OF_LISTENERS)] as readonly Key[];

/** Before there is a request; or Lua, or a pool, notes it. */
const NOT_NOTED: ReadonlySet<Key> = new Set([
  ...(['byShare', 'byRanges', 'byConnectionRate', 'byCertificate'] as const),
  'byAuthorization',
  'byPoolClients',
]);

/**
 * By the key in the templates, conditions that always hold, also where HAProxy has no counter: a refusal must not depend on its
 * count. They count at the listener, by the key of the namespace that every connection has (`sc1`), and at the route (`sc0`) if
 * routes are counted, and note the check for the log.
 */
export function refusalWords(listener: string, countsRoutes: boolean): View {
  return Object.fromEntries(
    KEYS.map((key, at) => {
      const ofListener = ` !{ sc_inc_gpc(${UNREAD + at},1,${refusalTable(listener)}) lt 0 }`;
      const ofRoute = countsRoutes && key !== 'byPoolClients' ? routeWords(at) : '';
      return [key, `${ofListener}${ofRoute}${NOT_NOTED.has(key) ? '' : noteWords(at)}`];
    }),
  );
}

/** The same for a listener without routes for HTTP, whose refusals are not counted by check. */
export const NO_REFUSAL_WORDS: View = Object.fromEntries(KEYS.map((key) => [key, '']));

/** The same for a pool, which does not know its listener: that one counts the note. */
export function poolRefusalWords(countsRoutes: boolean): View {
  const at = KEYS.indexOf('byPoolClients');
  return { byPoolClients: `${countsRoutes ? routeWords(at) : ''}${noteWords(at)}` };
}

/** '' for a check that HAProxy makes before it knows the route. */
function routeWords(at: number): string {
  return at < ROUTE_CHECKS.length ? ` !{ sc_inc_gpc(${STATUS_CLASSES + at},0) lt 0 }` : '';
}

function noteWords(at: number): string {
  const check = (REFUSING_CHECKS[at] ?? '').replaceAll(' ', '\\ ');
  return ` !{ str(refused\\ ${check}),set-var(txn.decision) -m len 0 }`;
}

/** The checks that a rule of this kind may refuse by. */
export function checksOfRule(rule: RouteRule): readonly string[] {
  const { action, limits, certificateName, auth, jwt, externalAuth } = rule;
  const {
    allowedCidrs = [],
    deniedCidrs = [],
    requestRate = 0,
    minuteRate = 0,
    requestsAtOnce = 0,
  } = limits ?? {};
  const isForward = action.kind === 'forward';
  const has: Readonly<Record<keyof typeof OF_RULES, boolean>> = {
    byRouteRanges: allowedCidrs.length + deniedCidrs.length > 0,
    byCertificateName: certificateName !== undefined,
    byRate: requestRate + minuteRate + requestsAtOnce > 0,
    byBody: (limits?.bodyBytes ?? 0) > 0,
    byRewrittenPath: isForward && action.rewrite?.path?.kind === 'groups',
    byUser: auth !== undefined,
    byToken: jwt !== undefined,
    byAuthorization: externalAuth !== undefined,
    byAnswer: action.kind === 'answer' || (isForward && !hasAllPools(action)),
    // By NetworkPolicies, which the pool has.
    byPoolClients: isForward,
  };
  return ROUTE_CHECKS.filter((_, at) => Object.values(has)[at]);
}

/** Each request has a pool. */
function hasAllPools({ backends }: ForwardAction): boolean {
  const used = backends.filter(({ weight }) => weight > 0);
  return used.length > 0 && used.every(({ pool }) => pool !== undefined);
}

/** The checks of a listener with routes for HTTP that do not depend on the route. */
export function checksOfListener({ rateLimit, tls, routing }: Listener): readonly string[] {
  const comparesNames = tls !== undefined && routing?.kind === 'http' && routing.detectMisdirected;
  const missing = new Set<string>([
    ...(rateLimit === 0 ? [OF_LISTENERS.byConnectionRate] : []),
    ...(tls === undefined ? [OF_LISTENERS.byCertificate] : []),
    ...(comparesNames ? [] : [OF_LISTENERS.byHostCertificate]),
  ]);
  // A target that is no pool is answered, too.
  return [...Object.values(OF_LISTENERS).filter((check) => !missing.has(check)), OF_RULES.byAnswer];
}
