// Any routes, also with hostile texts, judged by a second implementation of their precedence: HAProxy gives each request to
// the pool that it names, and a change from any routes to any others needs no reload.

import ava from 'ava';
import fc from 'fast-check';
import { expressionText, oneSpelling } from '../../agent/base/one-spelling.ts';
import { pathText } from '../../agent/haproxy/routes/encode.ts';
import { MAPS } from '../../agent/haproxy/routes/maps.ts';
import { mapFile } from '../../agent/haproxy/routes/route-files.ts';
import { tablesOf } from '../../agent/haproxy/routes/tables.ts';
import { parseMap } from '../../agent/haproxy/socket/readings.ts';
import type { LoadBalancer } from '../../agent/model/load-balancer.ts';
import type {
  HostPattern,
  RouteEntry,
  RouteMatch,
  RouteSection,
  ValueMatch,
} from '../../agent/model/routes.ts';
import { inOrder, type PlaceOfExpressions } from '../../agent/translate/routes/host-routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { ModelHost } from '../support/haproxy/model-host.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { entryOf, gatewayOf, matchOf, patternOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const POOLS = ['a', 'b', 'c'] as const;
const HOSTS = ['a.example.org', 'b.a.example.org', 'example.org', 'example.com', 'x.y.z.example.org'];
const PATTERNS = ['a.example.org', '*.a.example.org', '*.example.org', '*.org', '*', 'x.y.z.example.org'];
const HOSTILE = [
  'x',
  'é ü',
  '"\'\\',
  ';show info',
  '<<',
  '#',
  '|&=+',
  '%41',
  '$(id)',
  '{}',
  ',',
  ' %[src]',
  '*',
  'a\tb',
];
const elements = fc.constantFrom('one', 'two', 'v2', '', ...HOSTILE);
const METHODS = ['', '', '', 'GET', 'POST', 'PATCH'];
const NAMES = ['x-a', 'x-b'];

const paths = fc.array(elements, { minLength: 1, maxLength: 3 }).map((some) => `/${some.join('/')}`);
const values = fc.constantFrom('1', '2', ...HOSTILE);
const conditions = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom(...NAMES),
    kind: fc.constantFrom<ValueMatch['kind']>('exact', 'exact', 'regex'),
    value: values,
  }),
  { maxLength: 2, selector: ({ name }) => name },
);
/** A regular expression that matches the value and no other. */
const quoted = (each: ValueMatch): ValueMatch =>
  each.kind === 'exact' ? each : { ...each, value: each.value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') };

const matches: fc.Arbitrary<RouteMatch> = fc
  .record({
    path: paths,
    kind: fc.constantFrom('exact', 'prefix', 'prefix', 'root', 'regex', 'longer'),
    method: fc.constantFrom(...METHODS),
    headers: conditions,
    query: conditions,
  })
  .map(({ path, kind, method, headers, query }) => ({
    ...matchOf(kind === 'exact' ? `=${path}` : kind === 'root' ? '/' : path),
    ...(kind === 'regex' && { path: expressionFor(path) }),
    ...(kind === 'longer' && { path: longer(path) }),
    method,
    headers: headers.map(trimmed).map(quoted),
    query: query.map(quoted),
  }));

/** The path and what begins with it, in any case. */
function expressionFor(path: string): RouteMatch['path'] {
  const value = expressionText(oneSpelling(path)).replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  return { kind: 'regex', value: `(?i)${value}` };
}

/** A prefix whose author wrote more than its path. */
function longer(path: string): RouteMatch['path'] {
  const { value } = matchOf(path).path;
  return { kind: 'prefix', value, length: value.length + 5 };
}

/** HAProxy gives no blanks around a header's value. */
function trimmed(each: ValueMatch): ValueMatch {
  return { ...each, value: each.value.trim() };
}

const entries: fc.Arbitrary<RouteEntry> = fc
  .tuple(matches, fc.constantFrom(...POOLS))
  .map(([match, pool]) => entryOf(match, pool));

const sectionsIn = (order: PlaceOfExpressions): fc.Arbitrary<readonly RouteSection[]> =>
  fc
    .uniqueArray(
      fc.tuple(
        fc.constantFrom(...PATTERNS),
        fc.dictionary(fc.constantFrom(...PATTERNS), fc.array(entries, { maxLength: 6 }), { maxKeys: 4 }),
      ),
      { minLength: 1, maxLength: 3, selector: ([hostname]) => hostname },
    )
    .map((some) =>
      some.map(([hostname, hosts]) => {
        const inside = Object.entries(hosts).filter(([host]) => covers(patternOf(hostname), patternOf(host)));
        const ordered = inside.map(([host, entries]) => [
          host,
          inOrder([{ created: 0, key: '', entries }], order),
        ]);
        return sectionOf(hostname, hostname, Object.fromEntries(ordered));
      }),
    );

interface Asked {
  readonly host: string;
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

const requests: fc.Arbitrary<Asked> = fc.record({
  host: fc.constantFrom(...HOSTS),
  path: paths,
  method: fc.constantFrom('GET', 'POST'),
  headers: fc.dictionary(
    fc.constantFrom(...NAMES),
    values.map((each) => each.trim()),
    { maxKeys: 2 },
  ),
  query: fc.dictionary(fc.constantFrom(...NAMES), values, { maxKeys: 2 }),
});

/** Requests that lead somewhere: made from the routes. */
function made(from: readonly RouteSection[], any: readonly Asked[]): readonly Asked[] {
  const all = from.flatMap(({ hosts }) => hosts.flatMap((each) => each.entries));
  return any.map((asked, at) => {
    const entry = all[at % (all.length + 2)];
    if (entry === undefined) return asked;
    const { path } = entry.match;
    if (path.kind === 'regex') return { ...asked, path: asked.path.toUpperCase() };
    return { ...asked, path: path.kind === 'prefix' && at % 2 === 1 ? `${path.value}/x` : path.value || '/' };
  });
}

function covers(wide: HostPattern, narrow: HostPattern): boolean {
  if (wide.kind === 'any') return true;
  if (wide.kind === 'exact') return narrow.kind === 'exact' && narrow.suffix === wide.suffix;
  const isBelow = narrow.suffix.endsWith(`.${wide.suffix}`);
  return narrow.kind === 'labels'
    ? isBelow || narrow.suffix === wide.suffix
    : narrow.kind === 'exact' && isBelow;
}

function bySpecificity(a: HostPattern, b: HostPattern): number {
  const rank = ({ kind, suffix }: HostPattern): number =>
    kind === 'any' ? 0 : suffix.length * 2 + (kind === 'exact' ? 1_000 : 0);
  return rank(b) - rank(a);
}

/** The pool that should get the request; 404 for none. */
function expected(all: readonly RouteSection[], asked: Asked): string | number {
  const host: HostPattern = { kind: 'exact', suffix: asked.host };
  const [section] = all
    .filter(({ hostname }) => covers(hostname, host))
    .sort((a, b) => bySpecificity(a.hostname, b.hostname));
  const hosts = (section?.hosts ?? [])
    .filter((each) => covers(each.host, host))
    .sort((a, b) => bySpecificity(a.host, b.host));
  for (const each of hosts)
    for (const { match, rule } of each.entries)
      if (isMet(match, asked) && rule.action.kind === 'forward')
        return rule.action.backends[0]?.pool?.split(':')[2] ?? '';
  return 404;
}

function isMet({ path, method, headers, query }: RouteMatch, asked: Asked): boolean {
  const [wanted, got] = [pathText(path.value), pathText(asked.path)];
  const isPlain = path.kind === 'exact' ? got === wanted : got === wanted || got.startsWith(`${wanted}/`);
  const isPath = path.kind === 'regex' ? isAtStart(path.value, asked.path) : isPlain;
  const has = (values: Readonly<Record<string, string>>) => (each: ValueMatch) =>
    values[each.name] === (each.kind === 'exact' ? each.value : each.value.replace(/\\(.)/g, '$1'));
  return (
    isPath &&
    (method === '' || method === asked.method) &&
    headers.every(has(asked.headers)) &&
    query.every(has(asked.query))
  );
}

function isAtStart(expression: string, path: string): boolean {
  const letters = expression.slice('(?i)'.length).replace(/\\(.)/g, '$1');
  return expressionText(oneSpelling(path)).toLowerCase().startsWith(letters.toLowerCase());
}

for (const order of ['first', 'by-length'] as const)
  test(`Each request gets to the pool that the precedence of the routes names: expressions ${order}`, async (t) => {
    const place = { address: '127.0.0.1', port: await freePort() };
    const pools = await Promise.all(POOLS.map(async (name) => poolOf(name, [await startEcho(t, name)])));
    const model = await ModelHost.start(t, [gatewayOf(place, [sectionOf('one', '*')]), ...pools]);
    const property = fc.asyncProperty(
      sectionsIn(order),
      fc.array(requests, { minLength: 12, maxLength: 12 }),
      async (routes, any) => {
        await model.serve(gatewayOf(place, routes));
        for (const asked of made(routes, any)) {
          const { host, path, method, headers, query } = asked;
          const words = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join('='));
          const url = `${pathText(path)}${words.length > 0 ? `?${words.join('&')}` : ''}`;
          const bytes = Object.entries(headers).map(([name, value]) => [name, latin1(value)]);
          const length = method === 'POST' ? { 'content-length': '0' } : {};
          const { status, echo } = await request(place, url, {
            method,
            headers: { host, ...length, ...Object.fromEntries(bytes) },
          });
          const wanted = expected(routes, asked);
          const got = echo?.member ?? status;
          if (got === wanted) continue;
          t.log(`${JSON.stringify(asked)} got ${got} instead of ${wanted}`);
          return false;
        }
        return true;
      },
    );
    await t.notThrowsAsync(fc.assert(property, { numRuns: 60, endOnFailure: true }));
    t.is(model.reloads, 0);
  });

test('HAProxy boots from the files of any routes, and has exactly their rows', async (t) => {
  const gateways: LoadBalancer[] = [];
  for (const [at, routes] of fc.sample(sectionsIn('by-length'), 20).entries())
    gateways.push(
      gatewayOf({ address: '127.0.0.1', port: await freePort() }, routes, { name: `edge-${at}` }),
    );
  const pools = POOLS.map((name) => poolOf(name, ['127.0.0.1:9']));
  const { worker, paths } = await startRendered(t, [...gateways, ...pools]);
  const wanted = gateways.flatMap(({ listeners }) =>
    listeners.flatMap((each) => [...tablesOf(each).values()].flat()),
  );
  for (const map of MAPS) {
    const answer = await worker.runtime.ask(`show map ${mapFile(paths.routes, map)}`);
    const found = Array.from(parseMap(answer), ({ key, value }) => `${key} ${value}`);
    const rows = wanted.filter((row) => row.map === map).map(({ key, value }) => `${key} ${value}`);
    t.deepEqual(found.sort(), rows.sort(), map);
  }
});

/** The bytes of UTF-8, as the request writes them. */
function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}
