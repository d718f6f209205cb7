// What members get told about a client: by HAProxy itself, and by the proxies that it trusts.

import ava, { type ExecutionContext } from 'ava';
import type { Listener } from '../../agent/model/load-balancer.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { type Answer, request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, forwardTo, gatewayOf, poolOf, ruleOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';
/** An address of clients; the trusted proxies are others. */
const CLIENT = '127.0.0.1';
const PROXY = '127.0.7.1';
const TRUSTED = ['127.0.7.0/24', '192.0.2.0/24'];

type Headers = Readonly<Record<string, string>>;

async function behind(t: ExecutionContext, changes: Partial<Listener>, more = {}): Promise<Place> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const routes = { [HOST]: [{ ...entryOf('/', 'web'), rule: ruleOf('web', more) }] };
  const gateway = gatewayOf(place, [sectionOf('http', '*', routes)], changes);
  await startRendered(t, [gateway, poolOf('web', [await startEcho(t, 'web')])]);
  return place;
}

function ask(place: Place, from: string, headers: Headers = {}, host = HOST): Promise<Answer> {
  return request({ ...place, from }, '/', { headers: { host, ...headers } });
}

/** The headers that the member got and a proxy could have said. */
function told({ echo }: Answer): Headers {
  const all = Object.entries(echo?.headers ?? {});
  return Object.fromEntries(all.filter(([name]) => /forwarded|real.ip|request.id/.test(name)));
}

const FORGED: Headers = {
  'X-Forwarded-For': '10.9.9.9',
  'x-FORWARDED-for': '10.8.8.8, 10.7.7.7',
  X_Forwarded_For: '10.6.6.6',
  'X-Forwarded_For': '10.5.5.5',
  'X-Forwarded-Proto': 'https',
  'X-Forwarded-Host': 'bank.example',
  'X-Forwarded-Port': '443',
  'X-Forwarded-Prefix': '/admin',
  'X-Forwarded-Client-Cert': 'Subject="CN=admin"',
  'X-Real-IP': '10.4.4.4',
  X_Real_IP: '10.4.4.4',
  'X-Real_IP': '10.4.4.4',
  'X_Real-IP': '10.4.4.4',
  Forwarded: 'for=10.3.3.3;proto=https',
};

for (const trustedProxies of [undefined, TRUSTED])
  test(`A client's own forwarded headers reach no member, ${trustedProxies ? 'also beside trusted proxies' : 'and HAProxy adds what it knows'}`, async (t) => {
    const place = await behind(t, { trustedProxies });
    const own = {
      'x-forwarded-for': CLIENT,
      'x-forwarded-proto': 'http',
      'x-forwarded-port': String(place.port),
    };
    t.deepEqual(told(await ask(place, CLIENT, FORGED, `${HOST}:8080`)), own);
    t.deepEqual(told(await ask(place, CLIENT, {}, `${HOST}:8080`)), own);
  });

test('Headers that a client names as those of its connection stay, and members get no such names', async (t) => {
  const place = await behind(t, {});
  const names = { connection: 'X-Forwarded-For, x-request-id', 'keep-alive': '1' };
  const plain = await ask(place, CLIENT, names, HOST);
  t.is(plain.echo?.headers['x-forwarded-for'], CLIENT);
  t.notRegex(plain.echo?.headers.connection ?? '', /forwarded/i);
  const websocket = { upgrade: 'websocket', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
  const upgraded = await ask(place, CLIENT, { ...websocket, connection: 'x-forwarded-for, Upgrade' }, HOST);
  t.regex(upgraded.echo?.headers.connection ?? '', /^upgrade$/i);
  t.is(upgraded.echo?.headers['x-forwarded-for'], CLIENT);
});

test('A trusted proxy names the client, the scheme, the host and the port', async (t) => {
  const place = await behind(t, { trustedProxies: TRUSTED });
  const given = {
    'X-Forwarded-For': '198.51.100.7',
    'X-Forwarded-Proto': 'HTTPS',
    'X-Forwarded-Host': 'public.example',
    'X-Forwarded-Port': '443',
    'X-Forwarded-Prefix': '/shop',
    'X-Real-IP': '198.51.100.7',
    Forwarded: 'for=198.51.100.7',
  };
  t.deepEqual(told(await ask(place, PROXY, given)), {
    'x-forwarded-for': `198.51.100.7, ${PROXY}`,
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'public.example',
    'x-forwarded-port': '443',
    'x-forwarded-prefix': '/shop',
    'x-real-ip': '198.51.100.7',
    forwarded: 'for=198.51.100.7',
  });
  // In lists and repetitions the nearest proxy's counts, and what is no value does not.
  const doubled = { 'X-Forwarded-Proto': 'https', 'x-forwarded-proto': 'javascript', X_Forwarded_For: '1' };
  const bad = { 'X-Forwarded-Host': 'a.example, b<script>', 'X-Forwarded-Port': '80, 99999999' };
  t.deepEqual(told(await ask(place, PROXY, { ...doubled, ...bad })), {
    'x-forwarded-for': PROXY,
    'x-forwarded-proto': 'http',
    'x-forwarded-port': String(place.port),
  });
});

test('A route that rewrites the host tells members which one the client asked for', async (t) => {
  const rewrite = { hostname: 'inner.example', path: undefined };
  const place = await behind(t, { trustedProxies: TRUSTED }, { action: forwardTo('web', { rewrite }) });
  const hosts = async (from: string, headers: Headers): Promise<readonly (string | undefined)[]> => {
    const { echo } = await ask(place, from, headers, `${HOST}:8080`);
    return [echo?.headers.host, echo?.headers['x-forwarded-host']];
  };
  t.deepEqual(await hosts(CLIENT, FORGED), ['inner.example', `${HOST}:8080`]);
  t.deepEqual(await hosts(PROXY, { 'X-Forwarded-Host': 'public.example' }), [
    'inner.example',
    'public.example',
  ]);
});

test('Source ranges of a route are for the client that the trusted proxies name', async (t) => {
  const limits = {
    allowedCidrs: ['198.51.100.0/24', '2001:db8::/32'],
    deniedCidrs: [],
    requestRate: 0,
    bodyBytes: 0,
  };
  const place = await behind(t, { trustedProxies: TRUSTED }, { limits });
  const cases: readonly (readonly [what: string, from: string, list: Headers, status: number])[] = [
    ['named', PROXY, { 'X-Forwarded-For': '198.51.100.7' }, 200],
    ['with a port', PROXY, { 'X-Forwarded-For': '198.51.100.7:51812' }, 200],
    ['of IPv6', PROXY, { 'X-Forwarded-For': '2001:db8::7' }, 200],
    ['behind two proxies', PROXY, { 'X-Forwarded-For': '198.51.100.7, 192.0.2.9' }, 200],
    ['behind four proxies', PROXY, { 'X-Forwarded-For': '198.51.100.7,192.0.2.9,192.0.2.8' }, 200],
    ['over several lines', PROXY, { 'X-Forwarded-For': '198.51.100.7', 'x-forwarded-for': '192.0.2.9' }, 200],
    ['not named', PROXY, {}, 403],
    ['no proxy', CLIENT, { 'X-Forwarded-For': '198.51.100.7' }, 403],
    ['a client that says more than it is', PROXY, { 'X-Forwarded-For': '198.51.100.7, 203.0.113.5' }, 403],
    [
      'the same in a line before',
      PROXY,
      { 'X-Forwarded-For': '198.51.100.7', 'x-forwarded-for': '203.0.113.5' },
      403,
    ],
    ['behind a word', PROXY, { 'X-Forwarded-For': '198.51.100.7, unknown' }, 403],
    [
      'behind a word of the second proxy',
      PROXY,
      { 'X-Forwarded-For': '198.51.100.7, unknown, 192.0.2.9' },
      403,
    ],
    ['behind nothing', PROXY, { 'X-Forwarded-For': '198.51.100.7, ' }, 403],
    ['by the other name', PROXY, { X_Forwarded_For: '198.51.100.7' }, 403],
  ];
  for (const [what, from, headers, status] of cases)
    t.is((await ask(place, from, headers)).status, status, what);
});

test('A rate limit of a route counts the clients behind a trusted proxy, not the proxy', async (t) => {
  const limits = { allowedCidrs: [], deniedCidrs: [], requestRate: 3, bodyBytes: 0 };
  const place = await behind(t, { trustedProxies: TRUSTED }, { limits });
  const statuses = async (client: (turn: number) => string): Promise<readonly number[]> => {
    const answers = Array.from({ length: 12 }, (_, turn) =>
      ask(place, PROXY, { 'X-Forwarded-For': client(turn) }),
    );
    return (await Promise.all(answers)).map(({ status }) => status);
  };
  t.deepEqual(new Set(await statuses((turn) => `198.51.100.${turn}`)), new Set([200]));
  t.true((await statuses(() => '198.51.100.77')).includes(429));
});

test('Each request has an id of its own, and keeps that of a trusted proxy', async (t) => {
  const place = await behind(t, { trustedProxies: TRUSTED, requestIds: true });
  const idOf = async (from: string, headers: Headers): Promise<string | undefined> => {
    const answer = await ask(place, from, headers);
    const id = answer.echo?.headers['x-request-id'];
    t.is(answer.headers['x-request-id'], id);
    return id;
  };
  const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
  const first = (await idOf(CLIENT, {})) ?? '';
  t.regex(first, UUID);
  t.not(await idOf(CLIENT, {}), first);
  t.regex((await idOf(CLIENT, { 'X-Request-ID': 'mine' })) ?? '', UUID);
  t.is(await idOf(PROXY, { 'X-Request-ID': 'edge-17/abc.1' }), 'edge-17/abc.1');
  t.regex((await idOf(PROXY, { 'X-Request-ID': 'a"b' })) ?? '', UUID);
  t.regex((await idOf(PROXY, { 'X-Request-ID': 'a'.repeat(129) })) ?? '', UUID);
  t.regex((await idOf(PROXY, { 'X-Request-ID': 'a', 'x-request-id': 'b' })) ?? '', UUID);
  t.regex((await ask(place, CLIENT, {}, 'other.example')).headers['x-request-id'] ?? '', UUID, 'of a 404');
});

test('Without ids of requests the header is the business of clients and members', async (t) => {
  const place = await behind(t, {});
  t.is(told(await ask(place, CLIENT, { 'X-Request-ID': 'mine' }))['x-request-id'], 'mine');
});
