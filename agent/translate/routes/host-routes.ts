// The routes of one hostname: entries of many routes in one order of precedence, that of HTTPRoute and GRPCRoute
// (https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule) and of Ingress. Pure.

import { lengthOf } from '../../base/expression/expression.ts';
import { oneSpelling } from '../../base/one-spelling.ts';
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
  const byAge = routes.toSorted(byPrecedence).flatMap(({ entries }) => entries);
  const lengthsOf = expressions === 'first' ? NO_LENGTHS : lengthsOfPrefixes(byAge);
  return byAge
    .map((entry) => ({ entry, rank: rankOf(entry.match, expressions, lengthsOf) }))
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

/** By path, for prefixes whose authors wrote more than that. */
type Lengths = ReadonlyMap<string, number>;
const NO_LENGTHS: Lengths = new Map();

/** The longest prefix of a path takes it, so that none is longer than one below it. */
function lengthsOfPrefixes(entries: readonly RouteEntry[]): Lengths {
  const lengths = new Map<string, number>();
  for (const { match } of entries) {
    const { kind, value } = match.path;
    if (kind !== 'prefix') continue;
    const path = oneSpelling(value);
    const length = match.path.length ?? path.length;
    lengths.set(path, Math.min(length, lengths.get(path) ?? length));
  }
  if ([...lengths].every(([path, length]) => path.length === length)) return NO_LENGTHS;
  const above: string[] = [];
  for (const path of [...lengths.keys()].sort((a, b) => (`${a}/` < `${b}/` ? -1 : 1))) {
    while (above.length > 0 && !path.startsWith(`${above.at(-1)}/`)) above.pop();
    const length = lengths.get(path) ?? 0;
    for (const wider of above) lengths.set(wider, Math.min(length, lengths.get(wider) ?? length));
    above.push(path);
  }
  return lengths;
}

/**
 * Each number decides if those before it are equal; the lowest comes first. Paths: exact, then regular expressions and prefixes,
 * the longest first.
 */
function rankOf(
  { path, method, headers, query }: RouteMatch,
  expressions: PlaceOfExpressions,
  lengths: Lengths,
): readonly number[] {
  const { kind, value } = path;
  const others = [method === '' ? 1 : 0, -headers.length, -query.length];
  const plain = kind === 'regex' ? value : oneSpelling(value);
  if (expressions === 'first' || kind === 'exact') return [PATHS[kind], -plain.length, 0, ...others];
  if (kind === 'regex') return [PATHS.regex, -(path.length ?? lengthOf(value)), PATHS.regex, 0, ...others];
  return [PATHS.regex, -(lengths.get(plain) ?? plain.length), PATHS.prefix, -plain.length, ...others];
}

const PATHS = { exact: 0, regex: 1, prefix: 2 } as const;

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length; at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
