// What each check refuses: counts of the real HAProxy, and the fields `auth` and `user` of its connection log.

import ava, { type ExecutionContext } from 'ava';
import { checkJwks } from '../../agent/certificates/token-keys/token-keys.ts';
import { checkUserLines } from '../../agent/certificates/users.ts';
import { positionOf } from '../../agent/haproxy/stats/columns.ts';
import { ROUTE_REFUSALS } from '../../agent/haproxy/stats/refusal-counts.ts';
import { readTables } from '../../agent/haproxy/stats/route-counts.ts';
import type { Listener, LoadBalancer } from '../../agent/model/load-balancer.ts';
import type { RouteEntry, RouteLimits } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { type RenderedHaproxy, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { type Authorizer, externalAuth, startAuthorizer } from '../support/traffic/authorizer.ts';

import { request, startEcho } from '../support/traffic/echo.ts';
import { type LogLine, type LogReceiver, udpReceiver } from '../support/traffic/log-receiver.ts';
import { Authority, handshake } from '../support/traffic/tls.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { CertificateTexts } from '../support/values/certificate-texts.ts';
import { entryOf, gatewayOf, POOL, poolOf, sectionOf } from '../support/values/routes.ts';
import { EC, JWT, RSA } from '../support/values/token-cases.ts';
import { goodClaims, jwksOf, tokenOf } from '../support/values/tokens.ts';
import { basic, HASHES } from '../support/values/users.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';
const NO_LIMITS: RouteLimits = { allowedCidrs: [], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
const AUTH = { secret: 'default/users', realm: 'Shop', removesHeader: true };

interface Guarded {
  readonly place: Place;
  readonly auth: Authorizer;
  readonly log: LogReceiver;
  readonly haproxy: RenderedHaproxy;
  /** Its name. */
  readonly listener: string;
}

function entries(): readonly RouteEntry[] {
  const to = (path: string, more: object = {}, pool = 'web') =>
    entryOf(path, pool, { route: `HTTPRoute default${path}`, name: `HTTPRoute default${path}#0`, ...more });
  const asks = { externalAuth: externalAuth({ responseHeaders: ['x-auth-request-user'] }) };
  return [
    to('/open'),
    to('/closed', { action: { kind: 'answer', status: 403 } }),
    to('/ranges', { limits: { ...NO_LIMITS, deniedCidrs: ['127.0.0.0/8'] } }),
    to('/rate', { limits: { ...NO_LIMITS, requestRate: 1 } }),
    to('/body', { limits: { ...NO_LIMITS, bodyBytes: 3 } }),
    to('/name', { certificateName: 'CN=shop' }),
    to('/user', { auth: AUTH }),
    to('/token', { jwt: JWT }),
    to('/asks', asks),
    to('/signin', {
      externalAuth: externalAuth({ refusal: { ...externalAuth().refusal, signIn: 'https://$host/start' } }),
    }),
    to('/all', { auth: AUTH, ...asks }),
    to('/restricted', {}, 'restricted'),
  ];
}

async function guarded(
  t: ExecutionContext,
  changes: Partial<Listener> = {},
  routeMetrics = true,
): Promise<Guarded> {
  const auth = await startAuthorizer(t);
  const place = { address: '127.0.0.1', port: await freePort() };
  const users = checkUserLines(`ann:${HASHES.sha512}`);
  const keys = checkJwks(jwksOf(RSA, EC));
  if (typeof users === 'string' || typeof keys === 'string') throw new Error('No users');
  const gateway = gatewayOf(place, [sectionOf('http', '*', { [HOST]: entries() })], {
    log: 'all',
    asksServers: true,
    userLists: [{ name: 'secret default/users', fingerprint: users.fingerprint }],
    tokenKeys: [{ name: JWT.keys, fingerprint: keys.fingerprint, keys: keys.keys }],
    allowedCidrs: ['127.0.0.1/32'],
    rateLimit: 0,
    ...changes,
  });
  const web = await startEcho(t, 'web');
  const pools: readonly LoadBalancer[] = [
    poolOf('web', [web]),
    poolOf('restricted', [web], { pool: { ...POOL, clients: ['192.0.2.0/24'] } }),
    poolOf('auth', [auth.place], { pool: { ...POOL, retry: { attempts: 2, codes: [] } } }),
  ];
  const none = () => undefined;
  const pems = { certificate: none, authority: none, crl: none, users: () => users.pem.reveal() };
  const log = await udpReceiver(t, '127.0.0.1');
  const options = { pems, routeMetrics, logTarget: log.target };
  const haproxy = await startRendered(t, [gateway, ...pools], options);
  return { place, auth, log, haproxy, listener: gateway.listeners[0]?.name ?? '' };
}

/** What HAProxy has counted: of the listener by check, and of routes as `ROUTE CHECK`. */
async function counted({ haproxy, listener }: Guarded): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  await readTables(
    haproxy.worker.runtime,
    { lane: 'bulk', listeners: [listener], countsRoutes: true },
    ({ proxy, name, values }) => {
      const count = values[positionOf('stot')] ?? Number.NaN;
      const [of = '', check = ''] = name.split('|');
      if (count > 0) counts[proxy === ROUTE_REFUSALS ? `${of.split('/')[2]} ${check}` : check] = count;
    },
  );
  return counts;
}

type Headers = Readonly<Record<string, string>>;

/** The status of an answer, and the request's line in the log. */
async function asked(
  { place, log }: Guarded,
  path: string,
  headers: Headers = {},
  options: { readonly method?: string; readonly body?: string } = {},
): Promise<readonly [status: number, line: LogLine]> {
  const before = log.lines().length;
  const { status } = await request(place, path, { headers: { host: HOST, ...headers }, ...options });
  await until('The request is logged', async () => log.lines().length > before);
  return [status, log.lines().at(-1) ?? {}];
}

for (const [what, changes, countsRoutes] of [
  ['for its listener and its route', {}, true],
  ['for its listener', {}, false],
  ['for a listener with a rate limit', { rateLimit: 900 }, true],
] as const)
  test(`Each check counts what it refuses ${what}, and is named in the log`, async (t) => {
    const host = await guarded(t, changes, countsRoutes);
    const { place } = host;
    host.auth.answer = (response, { headers }) =>
      response.writeHead(Number(headers['x-wanted'] ?? 401)).end();
    const post = { method: 'POST', body: 'hello' };
    // Newer ones refuse such a request before any rule.
    const isOld = Number.parseInt(host.haproxy.worker.runtime.worker.version.text, 10) < 3;
    for (const [path, headers, options, expected] of [
      ['/open', {}, {}, [200, '-']],
      ['/closed', {}, {}, [403, 'refused answer']],
      ['/ranges', {}, {}, [403, 'refused source ranges of route']],
      ['/rate', {}, {}, [200, '-']],
      ['/rate', {}, {}, [429, 'refused request rate']],
      ['/body', { 'content-length': '5' }, post, [413, 'refused body']],
      ['/body', {}, {}, [200, '-']],
      ['/name', {}, {}, [403, 'refused name in certificate']],
      ['/user', {}, {}, [401, 'refused user']],
      ['/user', basic('ann', 'open'), {}, [200, 'passed user']],
      ['/token', {}, {}, [401, 'refused token']],
      [
        '/token',
        { authorization: `Bearer ${tokenOf(EC, goodClaims(Date.now()))}` },
        {},
        [200, 'passed token'],
      ],
      ['/asks', {}, {}, [401, 'refused authorization 401']],
      ['/asks', { 'x-wanted': '403' }, {}, [403, 'refused authorization 403']],
      ['/asks', { 'x-wanted': '500' }, {}, [503, 'refused authorization 500']],
      ['/asks', { 'x-wanted': '202' }, {}, [200, 'passed authorization 202']],
      ['/signin', {}, {}, [302, 'refused authorization 401']],
      ['/all', {}, {}, [401, 'refused user']],
      ['/all', basic('ann', 'open'), {}, [401, 'refused authorization 401']],
      ['/restricted', {}, {}, [403, 'refused clients of members']],
      ['/none', {}, {}, [404, 'refused route']],
      ['/a/../b', {}, {}, [400, 'refused path']],
      ['/open//x', {}, {}, [400, 'refused ambiguous path']],
      ['/open', { host: 'a@b' }, {}, [400, isOld ? 'refused host' : undefined]],
    ] as const) {
      const [status, line] = await asked(host, path, headers, options);
      t.deepEqual([status, line.auth], [...expected], `${path} ${JSON.stringify(headers)}`);
    }
    await t.throwsAsync(request({ ...place, from: '127.0.0.9' }, '/open', { headers: { host: HOST } }));
    const ofListener = {
      ...{ answer: 1, 'source ranges of route': 1, 'request rate': 1, body: 1, 'name in certificate': 1 },
      ...{ user: 2, token: 1, authorization: 5, 'clients of members': 1, route: 1, path: 1 },
      ...{ 'ambiguous path': 1, 'source ranges': 1, ...(isOld && { host: 1 }) },
    };
    const ofRoutes = {
      ...{ 'closed answer': 1, 'ranges source ranges of route': 1, 'rate request rate': 1, 'body body': 1 },
      ...{ 'name name in certificate': 1, 'user user': 1, 'token token': 1, 'asks authorization': 3 },
      ...{ 'signin authorization': 1, 'all user': 1, 'all authorization': 1 },
      ...{ 'restricted clients of members': 1 },
    };
    t.deepEqual(await counted(host), { ...ofListener, ...(countsRoutes && ofRoutes) });
  });

test('A service that does not answer is no answer in the log', async (t) => {
  const host = await guarded(t);
  host.auth.answer = (response) => void response.socket?.destroy();
  const [status, { auth }] = await asked(host, '/asks');
  t.is(status, 503);
  t.true(
    auth === 'refused authorization' ||
      auth === 'refused authorization 502' ||
      auth === 'refused authorization 503',
    String(auth),
  );
});

test('Names in the log are those that a check has verified: escaped, cut, and never those of the client', async (t) => {
  const host = await guarded(t);
  const names: readonly (readonly [given: string, logged: string])[] = [
    ['ann', 'ann'],
    ['a","status":999,"x":"', 'a","status":999,"x":"'],
    ['two\nlines\r\t\u0000x', 'two\nlines\r\t\u0000x'],
    ['Zoë \u{1f511}', 'Zoë '],
    ['x'.repeat(3_000), 'x'.repeat(128)],
    [`${'x'.repeat(127)}é`, 'x'.repeat(127)],
    ['%[env(HOME)]', '%[env(HOME)]'],
  ];
  for (const [given, logged] of names) {
    const token = tokenOf(EC, { ...goodClaims(Date.now()), sub: given });
    const [status, { user }] = await asked(host, '/token', { authorization: `Bearer ${token}` });
    t.deepEqual([status, user], [200, logged]);
    // A header has no line ends, and no NUL.
    const sent = given.replace(/\p{Cc}/gu, '');
    host.auth.answer = (response) =>
      response.writeHead(200, { 'x-auth-request-user': Buffer.from(sent).toString('latin1') }).end();
    const [, { user: ofService }] = await asked(host, '/asks', { 'x-auth-request-user': 'root' });
    t.is(ofService, logged.replace(/\p{Cc}/gu, ''));
  }
  const forged = tokenOf({ ...EC, kid: RSA.kid }, { ...goodClaims(Date.now()), sub: 'root' });
  t.is((await asked(host, '/token', { authorization: `Bearer ${forged}` }))[1].user, '-');
  host.auth.answer = (response) => response.writeHead(403, { 'x-auth-request-user': 'root' }).end();
  t.is((await asked(host, '/asks', { 'x-auth-request-user': 'root' }))[1].user, '-');
  host.auth.answer = (response) => response.writeHead(200, { 'x-auth-request-user': ['a', 'b'] }).end();
  t.is((await asked(host, '/asks'))[1].user, '-', 'two names');
  t.is((await asked(host, '/user', basic('hunter2', 'wrong')))[1].user, '-', 'perhaps a password');
  t.is((await asked(host, '/user', basic('ann', 'open')))[1].user, 'ann');
  t.is((await asked(host, '/all', basic('ann', 'open')))[1].user, 'ann');
  t.notRegex(host.log.messages.join(), /hunter2|wrong/);
});

test('A refusal does not depend on its count, which begins again with the next request', async (t) => {
  const host = await guarded(t);
  t.is((await asked(host, '/closed'))[0], 403);
  await host.haproxy.worker.runtime.ask(`clear table ${host.listener}:refusals`);
  t.is((await counted(host)).answer, undefined);
  for (const _ of [1, 2]) t.is((await asked(host, '/closed'))[0], 403);
  t.deepEqual(await counted(host), { answer: 2, 'closed answer': 3 });
});

test('Nothing that clients send makes another counter', async (t) => {
  const host = await guarded(t);
  const used = async (table: string): Promise<number> => {
    const text = await host.haproxy.worker.runtime.ask(`show table ${table}`);
    return Number(/used:(\d+)/.exec(text)?.[1]);
  };
  for (const path of ['/closed', '/user', '/none']) await asked(host, path);
  const [listener, routes] = [await used(`${host.listener}:refusals`), await used('headgate:routes')];
  t.is(listener, 1);
  for (let at = 0; at < 50; at++) {
    const name = `x${at}|check="a",b`;
    await asked(host, `/user/${encodeURIComponent(name)}`, basic(name, 'wrong'));
    await asked(host, `/none-${at}@HTTPRoute/default/forged#${at}`, { host: `h${at}.example` });
    await asked(host, '/asks', { 'x-auth-request-user': name, 'x-headgate-pool': name });
  }
  t.deepEqual(
    [await used(`${host.listener}:refusals`), await used('headgate:routes')],
    [listener, routes + 1],
  );
  t.deepEqual(
    Object.keys(await counted(host)).sort(),
    ['answer', 'asks authorization', 'authorization', 'closed answer', 'route', 'user', 'user user'].sort(),
  );
});

/** Clients have a certificate of the authority, or none. */
async function withCertificates(t: ExecutionContext, cn: string) {
  const authority = await Authority.create(t);
  const texts = new CertificateTexts();
  const certificate = texts.pair('default/edge', await authority.issue({ names: [HOST] }));
  const clients = {
    ...texts.clients('configmap default/clients', authority.cert),
    verify: 'optional',
  } as const;
  const place = { address: '127.0.0.1', port: await freePort() };
  const routes = { [HOST]: [entryOf('/', 'web')] };
  const tls = { certificates: [certificate], minVersion: '1.2', ciphers: [], alpn: [], clients } as const;
  const gateway = gatewayOf(place, [sectionOf('https', '*', routes)], { log: 'all', tls });
  const log = await udpReceiver(t, '127.0.0.1');
  await startRendered(t, [gateway, poolOf('web', [await startEcho(t, 'web')])], {
    pems: texts,
    logTarget: log.target,
  });
  const given = await authority.issue({ names: [cn] });
  const askAs = async (client?: { readonly cert: string; readonly key: string }): Promise<LogLine> => {
    const before = log.lines().length;
    const made = await handshake(place, { servername: HOST, rejectUnauthorized: false, ...client });
    made.socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    await until('The request is logged', () => log.lines().length > before);
    made.socket.destroy();
    return log.lines().at(-1) ?? {};
  };
  return { askAs, given };
}

test('The name in the log is that of a verified certificate, if no later check has another', async (t) => {
  const { askAs, given } = await withCertificates(t, 'shop"root');
  const { user, auth, status } = await askAs(given);
  t.deepEqual([user, auth, status], ['shop"root', 'passed client certificate', 200]);
  const none = await askAs();
  t.deepEqual([none.user, none.auth], ['-', '-']);
});
