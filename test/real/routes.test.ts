import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { withGroups } from '../../agent/base/expression/groups.ts';
import type { Listener } from '../../agent/model/load-balancer.ts';
import type {
  Cors,
  HeaderChanges,
  RedirectAction,
  RouteEntry,
  RouteLimits,
  RouteMatch,
  RouteSection,
  WeightedBackend,
} from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { routed } from '../support/haproxy/routed-haproxy.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import {
  entryOf,
  forwardTo,
  gatewayOf,
  matchOf,
  POOL,
  poolName,
  poolOf,
  sectionOf,
} from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

/** Host and URL, with method and headers if that matters, and the member or status. */
type Case = readonly [
  what: string,
  host: string,
  url: string,
  expected: string | number,
  more?: Parameters<typeof request>[2],
];

async function check(t: ExecutionContext, place: Place, cases: readonly Case[]): Promise<void> {
  for (const [what, host, url, expected, more] of cases) {
    const { status, echo } = await request(place, url, { ...more, headers: { host, ...more?.headers } });
    t.is(echo?.member ?? status, expected, what);
  }
}

const header = (
  name: string,
  value: string,
  kind: 'exact' | 'regex' = 'exact',
): RouteMatch['headers'][number] => ({
  name,
  kind,
  value,
});

const host = 'a.example.org';
const one = (entries: readonly RouteEntry[]): readonly RouteSection[] => [
  sectionOf('http', '*', { [host]: entries }),
];
const changes = (given: Partial<HeaderChanges>): HeaderChanges => ({
  set: [],
  add: [],
  remove: [],
  ...given,
});

test('A request goes to the route with the most specific hostname', async (t) => {
  const place = await routed(
    t,
    ['exact', 'wildcard', 'narrow', 'any'],
    [
      sectionOf('http', '*', {
        'a.example.org': [entryOf('/', 'exact')],
        '*.example.org': [entryOf('/', 'wildcard')],
        '*.b.example.org': [entryOf('/', 'narrow')],
        '*': [entryOf('/', 'any')],
      }),
    ],
  );
  await check(t, place, [
    ['the hostname itself', 'a.example.org', '/', 'exact'],
    ['with a port', 'a.example.org:8080', '/', 'exact'],
    ['in upper case', 'A.Example.Org', '/', 'exact'],
    ['a wildcard', 'c.example.org', '/', 'wildcard'],
    ['two labels of a wildcard', 'd.c.example.org', '/', 'wildcard'],
    ['ten labels of a wildcard', '9.8.7.6.5.4.3.2.1.0.example.org', '/', 'wildcard'],
    ['a narrower wildcard', 'c.b.example.org', '/', 'narrow'],
    ['no wildcard covers its own name', 'example.org', '/', 'any'],
    ['another host', 'example.com', '/', 'any'],
    ['with a dot at the end', 'a.example.org.', '/', 'exact'],
    ['with a dot and a port', 'a.example.org.:8080', '/', 'exact'],
    ['a wildcard with a dot', 'c.example.org.', '/', 'wildcard'],
    ['two dots are no hostname', 'a.example.org..', '/', 400],
    ['an address', '[2001:db8::1]:80', '/', 'any'],
    ['two hosts', 'c.example.org,a.example.org', '/', 400],
    ['two hosts with a blank', 'c.example.org, a.example.org', '/', 400],
    ['a host and a comma', 'a.example.org,', '/', 400],
    ['text that looks like a key', 'a.example.org|gateway:default:edge:tcp:80:v4', '/', 400],
    ['text that looks like the start of one', 'a.example.org|gateway', '/', 400],
  ]);
  t.is((await request(place, '/', {})).echo?.member ?? 'none', 'any', 'without a host');
});

test('Within a hostname the path decides first, then method, headers and query parameters', async (t) => {
  const services = ['exact', 'long', 'short', 'post', 'two', 'one', 'regex', 'query', 'both', 'root'];
  const place = await routed(t, services, [
    sectionOf('http', '*', {
      'a.example.org': [
        entryOf('=/v2/exact', 'exact'),
        entryOf(matchOf('/v2/long', { headers: [header('x-a', '1')] }), 'one'),
        entryOf('/v2/long', 'long'),
        entryOf(matchOf('/v2', { method: 'POST' }), 'post'),
        entryOf(matchOf('/v2', { headers: [header('x-a', '1'), header('x-b', '2')] }), 'two'),
        entryOf(matchOf('/v2', { headers: [header('x-a', '1')] }), 'one'),
        entryOf(matchOf('/v2', { headers: [header('x-r', 'v[0-9]+', 'regex')] }), 'regex'),
        entryOf(matchOf('/v2', { query: [header('p', '1'), header('q', 'a b')] }), 'both'),
        entryOf(matchOf('/v2', { query: [header('p', '1')] }), 'query'),
        entryOf('/v2', 'short'),
        entryOf('~/r[0-9]+/x', 'regex'),
      ],
    }),
  ]);
  const withHeaders = (headers: Readonly<Record<string, string>>) => ({ headers });
  await check(t, place, [
    ['an exact path', host, '/v2/exact', 'exact'],
    ['an exact path with a query', host, '/v2/exact?x=1', 'exact'],
    ['an exact path takes no more', host, '/v2/exact/', 'short'],
    ['the longest prefix', host, '/v2/long/x', 'long'],
    ['a condition of the longest prefix', host, '/v2/long/x', 'one', withHeaders({ 'X-A': '1' })],
    ['a prefix by elements', host, '/v2/', 'short'],
    ['the prefix alone', host, '/v2', 'short'],
    ['no part of an element', host, '/v2x', 404],
    ['a method before headers', host, '/v2', 'post', { method: 'POST', headers: { 'x-a': '1', 'x-b': '2' } }],
    ['more headers', host, '/v2', 'two', withHeaders({ 'x-a': '1', 'x-b': '2' })],
    ['fewer headers', host, '/v2', 'one', withHeaders({ 'x-a': '1', 'x-b': '3' })],
    ['a header with another value', host, '/v2', 'short', withHeaders({ 'x-a': '12' })],
    ['a header by a regular expression', host, '/v2', 'regex', withHeaders({ 'x-r': 'v12' })],
    ['which is for the whole value', host, '/v2', 'short', withHeaders({ 'x-r': 'av12' })],
    ['a query parameter', host, '/v2?q=1&p=1', 'query'],
    ['two query parameters', host, '/v2?q=a%20b&p=1', 'both'],
    ['the first value of a parameter counts', host, '/v2?p=2&p=1', 'short'],
    ['a path by a regular expression', host, '/r12/xy', 'regex'],
    ['that does not match', host, '/r/xy', 404],
    ['a path by a text that is no regular expression', host, '/(', 404],
    ['a header in the query', host, '/v2?x=1%0d%0ax-a:%201', 'short'],
    ['another host', 'b.example.org', '/v2', 404],
  ]);
});

test('A request that no route of its hostname takes goes to the next wider one of its section, and to no other', async (t) => {
  const place = await routed(
    t,
    ['a', 'wild', 'any', 'other'],
    [
      sectionOf('one', '*.example.org', {
        'a.example.org': [entryOf('/a', 'a')],
        '*.example.org': [
          entryOf('/w', 'wild'),
          entryOf(matchOf('/c', { headers: [header('x', '1')] }), 'wild'),
        ],
      }),
      sectionOf('two', '*', { '*': [entryOf('/', 'any')], 'x.example.org': [entryOf('/', 'other')] }),
      sectionOf('three', 'empty.example.org'),
    ],
  );
  await check(t, place, [
    ['its own hostname', 'a.example.org', '/a', 'a'],
    ['the next wider hostname', 'a.example.org', '/w', 'wild'],
    ['with a condition there', 'a.example.org', '/c', 'wild', { headers: { x: '1' } }],
    ['which is not met', 'a.example.org', '/c', 404],
    ['not another section', 'a.example.org', '/z', 404],
    ['a hostname that belongs to another section', 'x.example.org', '/z', 404],
    ['a section without routes', 'empty.example.org', '/w', 404],
    ['another section', 'example.com', '/z', 'any'],
  ]);
});

test('Requests are shared among backends by their weights', async (t) => {
  const place = await routed(
    t,
    ['a', 'b'],
    one([
      entryOf('/three', { a: 70, b: 30 }),
      entryOf('/half', { a: 1, '-': 1 }),
      entryOf('/zero', { a: 0, b: 5 }),
      entryOf('/none', { a: 0 }),
      entryOf('/invalid', '-'),
      entryOf('/grpc', forwardTo('-', { failure: 503 })),
      entryOf('/answer', { kind: 'answer', status: 403 }),
    ]),
  );
  const count = async (path: string, times: number) => {
    const counts: Record<string, number> = {};
    for (let at = 0; at < times; at++) {
      const { status, echo } = await request(place, path, { headers: { host } });
      const key = echo?.member ?? String(status);
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  };
  const { a = 0, b = 0, ...others } = await count('/three', 600);
  t.deepEqual(others, {});
  // 70 of 100, within four standard deviations.
  t.true(Math.abs(a - 420) < 45, `${a} and ${b}`);
  const half = await count('/half', 200);
  t.deepEqual(Object.keys(half).sort(), ['500', 'a']);
  t.true(Math.abs((half.a ?? 0) - 100) < 29, `${half.a}`);
  t.deepEqual(await count('/zero', 10), { b: 10 });
  t.deepEqual(await count('/none', 1), { 500: 1 });
  t.deepEqual(await count('/invalid', 1), { 500: 1 });
  t.deepEqual(await count('/grpc', 1), { 503: 1 });
  t.deepEqual(await count('/answer', 1), { 403: 1 });
});

test('A redirect changes what it names and keeps the rest', async (t) => {
  const redirect = (given: Partial<RedirectAction>): RedirectAction => ({
    kind: 'redirect',
    status: 302,
    scheme: '',
    hostname: '',
    port: 0,
    path: undefined,
    ...given,
  });
  const place = await routed(
    t,
    [],
    one([
      entryOf('/scheme', redirect({ scheme: 'https', status: 301 })),
      entryOf('/host', redirect({ hostname: 'b.example.org', status: 307 })),
      entryOf('/port', redirect({ port: 8443, status: 308 })),
      entryOf('/full', redirect({ path: { kind: 'full', value: '/x y"?#' }, status: 303 })),
      entryOf('/old/one', redirect({ path: { kind: 'prefix', value: '/new' } })),
      entryOf('/gone', redirect({ path: { kind: 'prefix', value: '' } })),
    ]),
  );
  for (const [url, status, location] of [
    ['/scheme/x?y=1', 301, `https://${host}/scheme/x?y=1`],
    ['/host/x', 307, 'http://b.example.org/host/x'],
    ['/port/x', 308, `http://${host}:8443/port/x`],
    ['/full/x?y=1', 303, `http://${host}/x%20y%22%3F%23?y=1`],
    ['/old/one/two?y=1', 302, `http://${host}/new/two?y=1`],
    ['/old/one', 302, `http://${host}/new`],
    ['/old/one/', 302, `http://${host}/new/`],
    ['/gone/x', 302, `http://${host}/x`],
    ['/gone', 302, `http://${host}/`],
  ] as const) {
    const answer = await request(place, url, { headers: { host } });
    t.is(answer.headers.location, location, url);
    t.is(answer.status, status, url);
  }
});

test('A redirect keeps the host that the client has asked for, without a port or a dot at its end', async (t) => {
  const action: RedirectAction = {
    kind: 'redirect',
    status: 301,
    scheme: 'https',
    hostname: '',
    port: 0,
    path: undefined,
  };
  const place = await routed(t, [], [sectionOf('http', '*', { '*': [entryOf('/', action)] })]);
  for (const [asked, found] of [
    ['shop.example.org.', 'shop.example.org'],
    ['Shop.example.org:8080', 'shop.example.org'],
    ['[2001:DB8::1]:8080', '[2001:db8::1]'],
    ['[2001:db8::1]', '[2001:db8::1]'],
    ['192.0.2.1:80', '192.0.2.1'],
  ] as const) {
    const { headers } = await request(place, '/x?y=1', { headers: { host: asked } });
    t.is(headers.location, `https://${found}/x?y=1`, asked);
  }
});

test('A route rewrites host and path', async (t) => {
  const rewriteTo = (value: string, kind: 'full' | 'prefix' = 'prefix') =>
    forwardTo('a', { rewrite: { hostname: '', path: { kind, value } } });
  const place = await routed(
    t,
    ['a'],
    one([
      entryOf('/full', rewriteTo('/x', 'full')),
      entryOf('/old/one', rewriteTo('/new')),
      entryOf('/gone', rewriteTo('')),
      entryOf('/a/b/c/d/e/f/g/h/i', rewriteTo('/nine')),
      entryOf('/host', forwardTo('a', { rewrite: { hostname: 'b.example.org', path: undefined } })),
      entryOf('/', rewriteTo('/root')),
    ]),
  );
  for (const [url, rewritten] of [
    ['/full/y?z=1', '/x?z=1'],
    ['/old/one/two?z=1', '/new/two?z=1'],
    ['/old/one', '/new'],
    ['/gone', '/'],
    ['/gone/x', '/x'],
    ['/a/b/c/d/e/f/g/h/i/j', '/nine/j'],
    ['/other', '/root/other'],
  ] as const)
    t.is((await request(place, url, { headers: { host } })).echo?.url, rewritten, url);
  t.is((await request(place, '/host', { headers: { host } })).echo?.headers.host, 'b.example.org');
});

test('A route rewrites a path by the groups of its expression, as the agent does', async (t) => {
  const cases = [
    ['/x/?(.*)', '/$1', ['/x', '/x/', '/x/a/b', '/xa', '/x//a']],
    ['/(api|web)/v(\\d+)(/.*)?', '/$2/$1$3', ['/api/v12/users', '/web/v1', '/web/v1x']],
    ['/lazy(.*?)/(.*)', '/$1-$2', ['/lazy/b/c', '/lazya/b/c/']],
    ['/((a)|b)+$', '/$1$2', ['/ab', '/ba']],
    ['/((((a*)*)*)*)c\\b', '/$1', ['/aaac', '/aaac/d']],
    ['/(?i)SHOP([/-].*)', '/new$1', ['/shop-a', '/Shop/%C3%A9?x=1']],
  ] as const;
  const entries = cases.map(([pattern, value]) =>
    entryOf(
      `~${pattern}`,
      forwardTo('a', { rewrite: { hostname: '', path: { kind: 'groups', value, pattern } } }),
    ),
  );
  const place = await routed(t, ['a'], one(entries));
  for (const [pattern, value, urls] of cases)
    for (const url of urls) {
      const [path = '', query] = url.split('?');
      const wanted = `${withGroups(pattern, value, path)}${query === undefined ? '' : `?${query}`}`;
      t.is((await request(place, url, { headers: { host } })).echo?.url, wanted, `${pattern} ${url}`);
    }
  t.is((await request(place, '/x../secret', { headers: { host } })).status, 400, 'a way up');
  const started = Date.now();
  t.is((await request(place, `/${'d'.repeat(14_000)}`, { headers: { host } })).status, 404);
  t.is((await request(place, `/x/${'a'.repeat(14_000)}`, { headers: { host } })).status, 200);
  t.is(
    (await request(place, `/${'a'.repeat(14_000)}c`, { headers: { host } })).status,
    500,
    'too many steps',
  );
  t.true(Date.now() - started < 1_000);
});

test('A route, and each of its backends, changes headers of requests and responses', async (t) => {
  const set = (name: string, value: string) => changes({ set: [{ name, value }] });
  const ofBackend: WeightedBackend = {
    pool: poolName('a'),
    weight: 1,
    requestHeaders: changes({
      set: [{ name: 'X-Backend', value: 'b' }],
      add: [{ name: 'X-Both', value: 'b' }],
    }),
    responseHeaders: set('X-From', 'backend'),
  };
  const place = await routed(
    t,
    ['a'],
    one([
      entryOf(
        '/all',
        forwardTo('a', {
          requestHeaders: changes({
            set: [{ name: 'X-Set', value: 'a;b "c" %20 \\ é&|=' }],
            add: [{ name: 'X-Add', value: '2' }],
            remove: ['X-Remove'],
          }),
        }),
        { responseHeaders: changes({ set: [{ name: 'X-Answer', value: 'yes' }], remove: ['Date'] }) },
      ),
      entryOf('/lines', forwardTo('a', { requestHeaders: set('X-Set', 'a\r\nX-Evil: 1\0') })),
      entryOf('/backend', { ...forwardTo('a'), backends: [ofBackend] }),
      entryOf('/both', {
        ...forwardTo('a', { requestHeaders: changes({ add: [{ name: 'X-Both', value: 'a' }] }) }),
        backends: [
          ofBackend,
          { ...ofBackend, requestHeaders: undefined, responseHeaders: undefined, weight: 0 },
        ],
      }),
    ]),
  );
  const all = await request(place, '/all', {
    headers: { host, 'x-set': 'old', 'x-add': '1', 'x-remove': '1' },
  });
  t.is(all.echo?.headers['x-set'], Buffer.from('a;b "c" %20 \\ é&|=').toString('latin1'));
  t.is(all.echo?.headers['x-add'], '1, 2');
  t.is(all.echo?.headers['x-remove'], undefined);
  t.is(all.headers['x-answer'], 'yes');
  t.is(all.headers.date, undefined);
  const lines = await request(place, '/lines', { headers: { host } });
  t.is(lines.echo?.headers['x-set'], 'aX-Evil: 1');
  t.is(lines.echo?.headers['x-evil'], undefined);
  const backend = await request(place, '/backend', { headers: { host } });
  t.is(backend.echo?.headers['x-backend'], 'b');
  t.is(backend.headers['x-from'], 'backend');
  const both = await request(place, '/both', { headers: { host } });
  t.is(both.echo?.headers['x-both'], 'a, b');
  t.is(both.headers['x-from'], 'backend');
});

test('A route answers preflight requests of the origins that it allows, and marks its responses', async (t) => {
  const cors: Cors = {
    origins: ['https://one.example', 'https://*.two.example:8443'],
    methods: ['GET', 'PUT'],
    allowHeaders: ['X-A', 'X-B'],
    exposeHeaders: ['X-C'],
    maxAge: 600,
    credentials: true,
  };
  const place = await routed(
    t,
    ['a'],
    one([
      entryOf('/some', 'a', { cors }),
      entryOf('/any', 'a', { cors: { ...cors, origins: ['*'], exposeHeaders: [], credentials: false } }),
      entryOf('/all', 'a', { cors: { ...cors, methods: ['*'], allowHeaders: ['*'] } }),
    ]),
  );
  const preflight = (url: string, origin: string) =>
    request(place, url, {
      method: 'OPTIONS',
      headers: { host, origin, 'access-control-request-method': 'PUT' },
    });
  const { status, headers: answer } = await preflight('/some', 'https://one.example');
  t.is(status, 204);
  t.is(answer['access-control-allow-origin'], 'https://one.example');
  t.is(answer['access-control-allow-methods'], 'GET, PUT');
  t.is(answer['access-control-allow-headers'], 'X-A, X-B');
  t.is(answer['access-control-max-age'], '600');
  t.is(answer['access-control-allow-credentials'], 'true');
  t.is((await preflight('/some', 'https://x.y.two.example:8443')).status, 204, 'a wildcard');
  t.is((await preflight('/any', 'https://three.example')).status, 204, 'any origin');
  for (const origin of [
    'https://two.example:8443',
    'http://x.two.example:8443',
    'https://x.two.example',
    'https://one.example.evil',
    '*',
  ]) {
    const refused = await preflight('/some', origin);
    t.is(refused.headers['access-control-allow-origin'], undefined, origin);
    t.is(refused.echo, undefined, 'no member gets a preflight request');
  }
  const asked = { origin: 'https://one.example', 'access-control-request-headers': 'x-a, x-b' };
  const all = await request(place, '/all', {
    method: 'OPTIONS',
    headers: { host, ...asked, 'access-control-request-method': 'PUT' },
  });
  t.is(all.headers['access-control-allow-methods'], 'PUT');
  t.is(all.headers['access-control-allow-headers'], 'x-a, x-b');
  const simple = await request(place, '/some', { headers: { host, origin: 'https://one.example' } });
  t.is(simple.echo?.member, 'a');
  t.is(simple.headers['access-control-allow-origin'], 'https://one.example');
  t.is(simple.headers['access-control-expose-headers'], 'X-C');
  t.is(
    (await request(place, '/some', { headers: { host } })).headers['access-control-allow-origin'],
    undefined,
  );
  const any = await request(place, '/any', { headers: { host, origin: 'https://three.example' } });
  t.is(any.headers['access-control-expose-headers'], undefined);
  t.is(any.headers['access-control-allow-credentials'], undefined);
  t.is(any.headers['access-control-allow-origin'], '*');
});

test('A wildcard of an origin is one label where a route says so', async (t) => {
  const cors: Cors = {
    origins: ['https://*.dev.example'],
    oneLabel: true,
    methods: [],
    allowHeaders: [],
    exposeHeaders: [],
    maxAge: 5,
    credentials: true,
  };
  const place = await routed(t, ['a'], one([entryOf('/', 'a', { cors })]));
  const allowed = async (origin: string) =>
    (await request(place, '/', { headers: { host, origin } })).headers['access-control-allow-origin'];
  t.is(await allowed('https://a.dev.example'), 'https://a.dev.example');
  for (const origin of [
    'https://a.b.dev.example',
    'https://dev.example',
    'http://a.dev.example',
    'https://a.dev.example.evil',
  ])
    t.is(await allowed(origin), undefined, origin);
});

test('A route has a timeout and limits of its own', async (t) => {
  const limits = (given: Partial<RouteLimits>): RouteLimits => ({
    allowedCidrs: [],
    deniedCidrs: [],
    requestRate: 0,
    bodyBytes: 0,
    ...given,
  });
  const place = await routed(
    t,
    ['a'],
    one([
      entryOf('/slow', forwardTo('a', { timeout: 200 })),
      entryOf('/open', 'a'),
      entryOf('/allowed', 'a', {
        limits: limits({ allowedCidrs: ['127.0.0.2/32', '10.0.0.0/8', 'fd00::/8'] }),
      }),
      entryOf('/denied', 'a', { limits: limits({ deniedCidrs: ['127.0.0.2/32'] }) }),
      entryOf('/rate', 'a', { limits: limits({ requestRate: 3 }) }),
      entryOf('/minute', 'a', { limits: limits({ minuteRate: 4 }) }),
      entryOf('/both', 'a', { limits: limits({ requestRate: 2, minuteRate: 3 }) }),
      entryOf('/once', 'a', { limits: limits({ requestsAtOnce: 2 }) }),
      entryOf('/body', 'a', { limits: limits({ bodyBytes: 10 }) }),
    ]),
  );
  const statusOf = async (url: string, from: string, headers: Readonly<Record<string, string>> = {}) =>
    (await request({ ...place, from }, url, { headers: { host, ...headers } })).status;
  t.is(await statusOf('/slow', '127.0.0.1', { 'x-delay': '1000' }), 504);
  t.is(await statusOf('/open', '127.0.0.1', { 'x-delay': '400' }), 200);
  t.is(await statusOf('/allowed', '127.0.0.2'), 200);
  t.is(await statusOf('/allowed', '127.0.0.3'), 403);
  t.is(await statusOf('/denied', '127.0.0.2'), 403);
  t.is(await statusOf('/denied', '127.0.0.3'), 200);
  const rates = [];
  for (let at = 0; at < 5; at++) rates.push(await statusOf('/rate', '127.0.0.4'));
  t.deepEqual(rates, [200, 200, 200, 429, 429]);
  t.is(await statusOf('/rate', '127.0.0.5'), 200);
  const slow = { 'x-delay': '500' };
  const once = await Promise.all([1, 2, 3].map(() => statusOf('/once', '127.0.0.4', slow)));
  t.deepEqual(once.sort(), [200, 200, 429]);
  t.is(await statusOf('/once', '127.0.0.4'), 200, 'all have ended');
  const inMinute = [];
  for (let at = 0; at < 6; at++) {
    inMinute.push(await statusOf('/minute', '127.0.0.4'));
    // Longer than the second of the other limit.
    if (at === 2) await delay(1_200);
  }
  t.deepEqual(inMinute, [200, 200, 200, 200, 429, 429]);
  t.is(await statusOf('/minute', '127.0.0.5'), 200);
  const both = [];
  for (let at = 0; at < 4; at++) {
    both.push(await statusOf('/both', '127.0.0.6'));
    if (at === 1) await delay(1_200);
  }
  t.deepEqual(both, [200, 200, 200, 429]);
  const post = (body: string) =>
    request(place, '/body', {
      method: 'POST',
      headers: { host, 'content-length': String(body.length) },
      body,
    });
  t.is((await post('12345678901')).status, 413);
  t.is((await post('1234567890')).status, 200);
});

test('A pool that retries sends a request again to another member after a time-out or a lost connection', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  // Nothing listens on port 1.
  const members = [await startEcho(t, 'slow'), await startEcho(t, 'fast'), '127.0.0.1:1'];
  const entry = (to: string) => entryOf(`/${to}`, forwardTo(to, { timeout: 150 }));
  await startRendered(t, [
    gatewayOf(place, one([entry('once'), entry('again')])),
    poolOf('once', members),
    poolOf('again', members, {
      pool: {
        ...poolOf('again', []).listeners[0]?.pool,
        retry: { attempts: 2, codes: [] },
      } as Listener['pool'],
    }),
  ]);
  const statuses = async (url: string) => {
    const found = new Set<number>();
    for (let at = 0; at < 6; at++)
      found.add((await request(place, url, { headers: { host, 'x-delay-in-slow': '3000' } })).status);
    return [...found].sort();
  };
  t.deepEqual(await statuses('/again'), [200]);
  t.true((await statuses('/once')).includes(504));
});

test('A rule that retries only what can be repeated sends no POST again, but any request that no member got', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  const members = [await startEcho(t, 'slow'), await startEcho(t, 'fast'), '127.0.0.1:1'];
  const retrying = { pool: { ...POOL, retry: { attempts: 2, codes: [] } } };
  const action = forwardTo('a', { timeout: 150, retriesIdempotentOnly: true });
  await startRendered(t, [gatewayOf(place, one([entryOf('/', action)])), poolOf('a', members, retrying)]);
  const statuses = async (method: string) => {
    const found = new Set<number>();
    for (let at = 0; at < 6; at++)
      found.add((await request(place, '/', { method, headers: { host, 'x-delay-in-slow': '3000' } })).status);
    return [...found].sort();
  };
  t.deepEqual(await statuses('GET'), [200]);
  t.deepEqual(await statuses('POST'), [200, 504]);
});

test('While no member of a pool takes connections, the pool of the default backend gets its requests', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  const [own, sorry] = [await startEcho(t, 'own'), await startEcho(t, 'sorry')];
  const fallback = poolName('sorry');
  await startRendered(t, [
    gatewayOf(
      place,
      one([
        entryOf('/own', forwardTo('own', { fallback })),
        entryOf('/empty', forwardTo('empty', { fallback })),
        entryOf('/missing', forwardTo('-', { failure: 503, fallback })),
        entryOf('/shared', forwardTo({ own: 1, empty: 1 }, { fallback })),
        entryOf('/alone', forwardTo('empty')),
      ]),
    ),
    poolOf('own', [own]),
    poolOf('empty', []),
    poolOf('sorry', [sorry]),
  ]);
  await check(t, place, [
    ['members of its own', host, '/own', 'own'],
    ['no member', host, '/empty', 'sorry'],
    ['no Service', host, '/missing', 'sorry'],
    ['no default backend', host, '/alone', 503],
  ]);
  const shared = new Set<string | undefined>();
  for (let at = 0; at < 30; at++)
    shared.add((await request(place, '/shared', { headers: { host } })).echo?.member);
  t.deepEqual([...shared].sort(), ['own', 'sorry']);
});

test('A pool that chooses members by a key sends equal keys to one member', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  const members = await Promise.all(['one', 'two', 'three'].map((name) => startEcho(t, name)));
  const hashed = { pool: { ...POOL, algorithm: 'key-hash' as const } };
  const entry = (path: string, hashBy: string) => entryOf(path, forwardTo('a', { hashBy }));
  await startRendered(t, [
    gatewayOf(place, one([entry('/user', '$arg_user'), entry('/all', '$http_x_a$cookie_b$host')])),
    poolOf('a', members, hashed),
  ]);
  const memberOf = async (url: string, headers: Readonly<Record<string, string>> = {}) =>
    (await request(place, url, { headers: { host, ...headers } })).echo?.member;
  const users = Array.from({ length: 30 }, (_, at) => `/user?user=u${at}&x=`);
  const first = await Promise.all(users.map((url) => memberOf(`${url}1`)));
  t.deepEqual(await Promise.all(users.map((url) => memberOf(`${url}2`))), first);
  t.is(new Set(first).size, 3);
  const byHeader = (a: string, b: string) => memberOf('/all', { 'x-a': a, cookie: `c=1; b=${b}` });
  const some = await Promise.all(users.map((_, at) => byHeader(`${at}`, 'x')));
  t.deepEqual(await Promise.all(users.map((_, at) => byHeader(`${at}`, 'x'))), some);
  t.is(new Set(some).size, 3);
});

const DOTS = [
  '/v2/../admin',
  '/v2/./x',
  '/v2/..',
  '/v2/.',
  '/v2/%2e%2E/admin',
  '/v2/.%2e/admin',
  '/v2/..;a=1/admin',
  '/v2%2f..%2Fadmin',
  '/v2/..%2fadmin',
];
const NO_DOTS = ['/v2/..a', '/v2/a..', '/v2/.well-known/x', '/v2/...', '/v2/a.b', '/v2/%2ex', '/v2/a;..'];

for (const [dotSegments, expected] of [
  ['reject', DOTS.map(() => 400)],
  ['pass', DOTS.map((path) => (path.startsWith('/v2%') ? 'root' : 'v2'))],
  ['normalize', ['admin', 'v2', 'root', 'v2', 'admin', 'admin', 'admin', 'admin', 'admin']],
] as const)
  test(`A path with dot segments: ${dotSegments}`, async (t) => {
    const entries = [entryOf('/admin', 'admin'), entryOf('/v2', 'v2'), entryOf('/', 'root')];
    const place = await routed(t, ['admin', 'v2', 'root'], one(entries), undefined, { dotSegments });
    await check(
      t,
      place,
      DOTS.map((path, at): Case => [path, host, path, expected[at] ?? 0]),
    );
    for (const path of NO_DOTS) {
      const { echo } = await request(place, `${path}?a=/../b`, { headers: { host } });
      t.deepEqual([echo?.member, echo?.url], ['v2', `${path}?a=/../b`]);
    }
  });

test('A path with dot segments is normalized as RFC 3986 says', async (t) => {
  const place = await routed(t, ['web'], one([entryOf('/', 'web')]), undefined, { dotSegments: 'normalize' });
  for (const [path, normal] of [
    ['/a/b/c/./../../g', '/a/g'],
    ['/../../a', '/a'],
    ['/..', '/'],
    ['/a/..', '/'],
    ['/a/.', '/a/'],
    ['/a/b/..?x=1', '/a/?x=1'],
    ['/a//../b', '/a/b'],
    ['/a/%2e%2e/b%20c', '/b%20c'],
  ] as const)
    t.is((await request(place, path, { headers: { host } })).echo?.url, normal, path);
});

/** No client is let in. */
const CLOSED = { kind: 'answer', status: 403 } as const;

test('A path is looked up in one spelling', async (t) => {
  const entries = [
    entryOf('/admin', CLOSED),
    entryOf('/é', 'e'),
    entryOf('/x%79', 'xy'),
    entryOf('/', 'root'),
  ];
  const place = await routed(t, ['e', 'xy', 'root'], one(entries));
  await check(t, place, [
    ['unreserved characters', host, '/%61dmin', 403],
    ['all of them', host, '/%61%64%6D%69%6e', 403],
    ['below it', host, '/%61dmin/x', 403],
    ['upper case', host, '/%C3%A9', 'e'],
    ['lower case', host, '/%c3%a9/x', 'e'],
    ['what an author has encoded', host, '/xy', 'xy'],
    ['and a client', host, '/%78y', 'xy'],
    ['an encoded percent sign is not decoded twice', host, '/%2561dmin', 'root'],
    ['no encoding', host, '/%6', 'root'],
  ]);
  // Members get what the client has sent, because signatures are made of it.
  t.is((await request(place, '/%7ea%c3?q=%61', { headers: { host } })).echo?.url, '/%7ea%c3?q=%61');
});

const AMBIGUOUS = [
  '//admin',
  '/x//admin',
  '/admin;x',
  '/;/admin',
  '/admin%2fx',
  '/%2Fadmin',
  '/x%5Cadmin',
  '/x\\admin',
  '/admin%3Bx',
];

for (const [ambiguousPaths, guarded, open] of [
  ['reject-where-guarded', 400, 'root'],
  ['reject', 400, 400],
  ['pass', 'root', 'root'],
] as const)
  test(`A path that members could read in another way: ${ambiguousPaths}`, async (t) => {
    const sections = [
      sectionOf('http', '*', {
        [host]: [entryOf('/admin', CLOSED), entryOf('/', 'root')],
        'open.example': [entryOf('/', 'root')],
        'narrow.wide.example': [entryOf('/y', 'root')],
        '*.wide.example': [entryOf('/admin', CLOSED), entryOf('/', 'root')],
        'guarded.wild.example': [entryOf('/admin', CLOSED)],
        '*.wild.example': [entryOf('/', 'root')],
        // All of the host is guarded alike, so that there is nothing to get around.
        'whole.example': [entryOf('/', 'root', { limits: WIDE }), entryOf('/a', 'root', { limits: WIDE })],
      }),
    ];
    const place = await routed(t, ['root'], sections, undefined, { ambiguousPaths });
    await check(
      t,
      place,
      AMBIGUOUS.flatMap((path): Case[] => [
        [`${path} of a guarded host`, host, path, guarded],
        [`${path} of an open host`, 'open.example', path, open],
        [`${path} of a host whose wider one is guarded`, 'narrow.wide.example', path, guarded],
        [`${path} of a guarded host whose wider one is open`, 'guarded.wild.example', path, guarded],
        [`${path} of a host that is guarded as a whole`, 'whole.example', path, open],
      ]),
    );
    await check(t, place, [['another path', host, '/x?a=//admin;b%2f', 'root']]);
  });

const WIDE = { allowedCidrs: ['127.0.0.0/8'], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };

test('A route that does not fit into rows of maps keeps its match and answers 500', async (t) => {
  const long = 'x'.repeat(7_000);
  const allowedCidrs = Array.from({ length: 500 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`);
  const place = await routed(
    t,
    ['root'],
    one([
      entryOf('/ranges', 'root', { limits: { ...WIDE, allowedCidrs } }),
      entryOf(`/path/${'y'.repeat(5_000)}`, 'root'),
      entryOf(matchOf('/header', { headers: [header('x-a', long)] }), 'root'),
      entryOf('/', 'root'),
    ]),
  );
  await check(t, place, [
    ['too many ranges', host, '/ranges/x', 500],
    ['a path that is too long', host, `/path/${'y'.repeat(5_000)}`, 500],
    ['a header that is too long', host, '/header', 500, { headers: { 'x-a': long } }],
    ['another header', host, '/header', 'root', { headers: { 'x-a': 'y' } }],
    ['all others', host, '/', 'root'],
  ]);
});
