// The routes of one hostname: entries of many routes in one order of precedence, that of HTTPRoute and GRPCRoute
// (https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule) and of Ingress. Pure.

import type { RouteEntry, RouteMatch } from '../../model/routes.ts';

/** The entries of one route; keeps its identity while the route, and what it refers to, does not change. */
export interface RouteEntries {
  /** Milliseconds since the epoch. */
  readonly created: number;
  /** `namespace/name`. */
  readonly key: string;
  /** In the order of the route's rules and matches. */
  readonly entries: readonly RouteEntry[];
}

/**
 * Where regular expressions stand: `first`, before all prefixes, as the Gateway API lets implementations choose; `by-length`,
 * before those that are not longer, as in ingress-nginx.
 */
export type PlaceOfExpressions = 'first' | 'by-length';

/** The first that matches a request is taken. */
export function inOrder(
  routes: readonly RouteEntries[],
  expressions: PlaceOfExpressions = 'first',
): readonly RouteEntry[] {
  const byAge = routes.toSorted(byPrecedence);
  return byAge
    .flatMap(({ entries }) => entries)
    .map((entry) => ({ entry, rank: rankOf(entry.match, expressions) }))
    .sort((a, b) => compareRanks(a.rank, b.rank))
    .map(({ entry }) => entry);
}

/** Older objects first, then by namespace and name. */
export function byPrecedence(
  a: { readonly created: number; readonly key: string },
  b: { readonly created: number; readonly key: string },
): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

/**
 * Each number decides if those before it are equal; the lowest comes first. Paths: exact, then regular expressions and prefixes,
 * the longest first.
 */
function rankOf(
  { path, method, headers, query }: RouteMatch,
  expressions: PlaceOfExpressions,
): readonly number[] {
  const others = [method === '' ? 1 : 0, -headers.length, -query.length];
  const [kind, length] = [PATHS[path.kind], -(path.length ?? path.value.length)];
  if (expressions === 'first' || path.kind === 'exact') return [kind, length, 0, ...others];
  return [PATHS.regex, length, kind, ...others];
}

const PATHS = { exact: 0, regex: 1, prefix: 2 } as const;

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length; at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
