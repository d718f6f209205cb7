// Routes and requests drawn at random, whose paths, hosts, methods and parameters often meet one another.

import fc from 'fast-check';
import type { RouteEntry, RouteRule } from '../../../agent/model/routes.ts';
import { inOrder, type PlaceOfExpressions } from '../../../agent/translate/routes/host-routes.ts';
import { matchOf, ruleOf } from './routes.ts';

/** The hostnames of a listener for any host, and of one for `*.a.example.org`. */
export const ANY_HOSTS = ['shop.example.org', '*.example.org', '*.a.example.org', 'x.a.example.org', '*'];
export const NARROW_HOSTS = ['*.a.example.org', 'x.a.example.org', '*.x.a.example.org'];
const REQUEST_HOSTS = [
  ...['shop.example.org', 'x.a.example.org', 'y.a.example.org', 'b.x.a.example.org'],
  ...['other.example', 'z.example.org', 'example.org'],
];
const SEGMENTS = ['a', 'b', 'admin', 'v1', '%C3%A9', 'A', '-', '~x', 'a.b', '@b'];
const path = fc
  .array(fc.constantFrom(...SEGMENTS), { maxLength: 3 })
  .map((segments) => `/${segments.join('/')}`);
const matches = fc
  .record({
    // `+`: a prefix whose author wrote more than that.
    kind: fc.constantFrom('', '', '+', '=', '~', '~i'),
    path,
    method: fc.constantFrom('', '', '', 'GET', 'POST'),
    headers: fc.constantFrom([], [], [{ name: 'x-a', kind: 'exact', value: '1' } as const]),
    query: fc.constantFrom([], [], [{ name: 'q', kind: 'exact', value: 'é' } as const]),
  })
  .map(({ kind, path: value, ...more }) => {
    if (kind === '~') return matchOf(`~${value.replaceAll('.', '\\.')}[0-9a-z]*$`, more);
    if (kind === '~i') return matchOf(`~(?i)${value.replaceAll('.', '\\.')}`, more);
    const match = matchOf(`${kind === '+' ? '' : kind}${value}`, more);
    return kind === '+' ? { ...match, path: { ...match.path, length: value.length + 9 } } : match;
  });

/** Rules of one host in the order of precedence, each with another name; `action`: drawn for each. */
export function randomEntries(
  action: fc.Arbitrary<RouteRule['action'] | string>,
  order: PlaceOfExpressions = 'first',
): fc.Arbitrary<RouteEntry[]> {
  return fc
    .uniqueArray(fc.tuple(matches, action), {
      minLength: 1,
      maxLength: 8,
      selector: ([match]) => JSON.stringify(match),
    })
    .map((all) => {
      const entries = all.map(([match, own]): RouteEntry => ({ match, rule: ruleOf(own) }));
      return inOrder([{ created: 0, key: 'default/route', entries }], order).map(({ match, rule }, at) => ({
        match,
        rule: { ...rule, name: `HTTPRoute default/route#${at}` },
      }));
    });
}

export function randomHosts(
  action: fc.Arbitrary<RouteRule['action'] | string>,
  hosts: readonly string[],
  order: PlaceOfExpressions = 'first',
): fc.Arbitrary<Record<string, RouteEntry[]>> {
  return fc.dictionary(fc.constantFrom(...hosts), randomEntries(action, order), { minKeys: 1, maxKeys: 3 });
}

export interface RandomRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly header: string;
}

export const randomRequests: fc.Arbitrary<RandomRequest> = fc.record({
  method: fc.constantFrom('GET', 'GET', 'GET', 'POST', 'DELETE'),
  host: fc.constantFrom(...REQUEST_HOSTS),
  path: fc
    .record({
      path,
      end: fc.constantFrom('', '', '', '/', '0', '/x', '//', '%2Fx', ';p'),
      query: fc.constantFrom('', '', '?q=%C3%A9', '?q=1&q=%C3%A9', '?r=1'),
      spelled: fc.boolean(),
    })
    .map(({ path: value, end, query, spelled }) => {
      const one = spelled ? value.replace('a', '%61').replace('@', '%40') : value;
      return `${value === '/' && end.startsWith('/') ? '' : one}${end}${query}`;
    }),
  header: fc.constantFrom('', '', '1', '2'),
});
