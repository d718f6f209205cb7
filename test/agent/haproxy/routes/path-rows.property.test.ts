// Rows of paths, looked up as HAProxy and its Lua do, against the order of the routes: prefixes, exact paths and regular expressions
// in both orders.

import test from 'ava';
import fc from 'fast-check';
import { isMatch } from '../../../../agent/base/expression/expression.ts';
import { expressionId } from '../../../../agent/haproxy/routes/encode.ts';
import { pathRows } from '../../../../agent/haproxy/routes/path-rows.ts';
import type { RouteEntry } from '../../../../agent/model/routes.ts';
import { inOrder } from '../../../../agent/translate/routes/host-routes.ts';
import { entryOf, matchOf, patternOf } from '../../../support/values/routes.ts';

const TABLE = 'T';
const PATHS = ['/', '/a', '/a/b', '/a/b/c', '/ab', '/b', '/a/bb'];
const PATTERNS = ['/a', '/a/.*', '(?i)/A/b', '/(a|b)', '/a/[a-z]+/c', '/', '(?i)/a/b{1,2}'];

const entries = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom(...PATHS),
        fc.constantFrom(...PATHS).map((path) => `=${path}`),
        fc.constantFrom(...PATTERNS).map((path) => `~${path}`),
      ),
      fc.constantFrom('', '', 'POST'),
      // What the author of the path wrote besides.
      fc.constantFrom(0, 0, 0, 2, 9),
    ),
    { maxLength: 8 },
  )
  .map((all) =>
    all.map(([text, method, more], at) => {
      const match = { ...matchOf(text), method };
      const { kind, value } = match.path;
      const path = more === 0 || kind === 'exact' ? match.path : { kind, value, length: value.length + more };
      return entryOf({ ...match, path }, `p${at}`);
    }),
  );

const requests = fc.record({
  path: fc.constantFrom(...PATHS, '/a/b/c/d', '/a/x/c', '/c', '/abc', '/A/B', '/a/BB'),
  method: fc.constantFrom('GET', 'POST'),
});

for (const place of ['first', 'by-length'] as const)
  test(`The rows of a host lead each request to the first route that matches it: expressions ${place}`, (t) => {
    fc.assert(
      fc.property(entries, requests, (given, { path, method }) => {
        const ordered = inOrder([{ created: 0, key: 'a/b', entries: given }], place);
        const expected = ordered.find((entry) => isTaken(entry, path, method));
        const found = lookedUp(ordered, path, method);
        t.is(found, expected === undefined ? undefined : poolOf(expected));
      }),
      { numRuns: 3_000 },
    );
  });

function isTaken({ match }: RouteEntry, path: string, method: string): boolean {
  const { kind, value } = match.path;
  if (match.method !== '' && match.method !== method) return false;
  if (kind === 'regex') return isMatch(value, 'start', path);
  return kind === 'exact' ? path === value : `${path}/`.startsWith(`${value}/`);
}

function poolOf({ rule: { action } }: RouteEntry): string | undefined {
  return action.kind === 'forward' ? action.backends[0]?.pool : undefined;
}

/** The pool that the rows lead to. */
function lookedUp(entries: readonly RouteEntry[], path: string, method: string): string | undefined {
  const rows = pathRows({ host: patternOf('h'), entries }, TABLE);
  const of = (name: string) =>
    new Map(rows.filter(({ map }) => map === name).map((row) => [row.key, row.value]));
  const [lists, exact, prefix] = [of('lists'), of('exact'), of('prefix')];
  const patterns = new Map(
    entries
      .filter(({ match }) => match.path.kind === 'regex')
      .map(({ match }) => [expressionId(match.path.value, 'start', TABLE), match.path.value]),
  );
  const isMet = (condition: string): boolean =>
    condition.startsWith('m')
      ? condition.slice(1) === method
      : isMatch(patterns.get(condition.slice(1)) ?? '', 'start', path);
  const pick = (target: string): string | undefined => {
    if (!target.startsWith('?')) return target;
    for (const candidate of lists.get(target)?.split('|') ?? []) {
      const [next = '', ...conditions] = candidate.split('&');
      const picked = conditions.every(isMet) ? pick(next) : undefined;
      if (picked !== undefined) return picked;
    }
    return undefined;
  };
  const longest = [...prefix.keys()]
    .filter((key) => `${TABLE}${path}/`.startsWith(key))
    .sort((a, b) => b.length - a.length)[0];
  const target = exact.get(`${TABLE}${path}`) ?? (longest === undefined ? undefined : prefix.get(longest));
  return target === undefined ? undefined : pick(target)?.split('@')[0];
}
