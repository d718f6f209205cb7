// Tokens of routes at the real HAProxy: who is let in, what members get, and that it judges each token as `why` does.

import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { checkJwks } from '../../agent/certificates/token-keys/token-keys.ts';
import type { LoadBalancer } from '../../agent/model/load-balancer.ts';
import type { RouteJwt } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RenderedHaproxy, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { EC, JWT, RSA, tokenCases } from '../support/values/token-cases.ts';
import { goodClaims, ISSUER, jwksOf, pemOf, type Signer, signer, tokenOf } from '../support/values/tokens.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';
const HEADERS = [
  { name: 'X-User', claim: 'sub' },
  { name: 'X-Groups', claim: 'groups' },
  { name: 'X-Missing', claim: 'none' },
];

interface Guarded {
  readonly place: Place;
  readonly haproxy: RenderedHaproxy;
  /** With other keys. */
  readonly withKeys: (...signers: readonly Signer[]) => readonly LoadBalancer[];
}

/** `routes`: by path. */
async function guarded(
  t: ExecutionContext,
  routes: Readonly<Record<string, Partial<RouteJwt>>>,
  signers: readonly Signer[] = [RSA, EC],
): Promise<Guarded> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const entries = Object.entries(routes).map(([path, changes]) =>
    entryOf(path, 'web', { jwt: { ...JWT, ...changes } }),
  );
  const all = { [HOST]: [entryOf('/open', 'web'), ...entries] };
  const pool = poolOf('web', [await startEcho(t, 'web')]);
  const withKeys = (...some: readonly Signer[]): readonly LoadBalancer[] => {
    const keys = some.length === 0 ? { fingerprint: '', keys: [] } : checkJwks(jwksOf(...some));
    if (typeof keys === 'string') throw new Error(keys);
    const set = { name: JWT.keys, fingerprint: keys.fingerprint, keys: keys.keys };
    return [gatewayOf(place, [sectionOf('http', '*', all)], { tokenKeys: [set] }), pool];
  };
  return { place, haproxy: await startRendered(t, withKeys(...signers)), withKeys };
}

const ask = (place: Place, headers: Readonly<Record<string, string>> = {}, path = '/') =>
  request(place, path, { headers: { host: HOST, ...headers } });

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test('HAProxy lets in the tokens that `why` lets in, and no other', async (t) => {
  const cases = tokenCases(Date.now());
  const routes = Object.fromEntries(cases.map(({ changes }, at) => [`/${at}`, changes]));
  const { place } = await guarded(t, routes);
  // The second time from memory.
  for (const [at, { what, token, fault }] of cases.entries())
    for (const turn of [1, 2]) {
      const { status, headers, echo } = await ask(place, bearer(token), `/${at}`);
      t.is(status, fault === '' ? 200 : 401, `${what}, request ${turn}`);
      t.is(headers['www-authenticate'], fault === '' ? undefined : 'Bearer error="invalid_token"', what);
      t.is(echo?.headers.authorization, fault === '' ? `Bearer ${token}` : undefined);
    }
  t.is((await ask(place, {}, '/open')).status, 200);
  const none = await ask(place, {}, '/0');
  t.deepEqual([none.status, none.headers['www-authenticate']], [401, 'Bearer']);
});

for (const algorithm of ['RS384', 'RS512', 'ES384', 'ES512'] as const)
  test(`HAProxy verifies ${algorithm}, by the only key of a set whatever name it has`, async (t) => {
    const own = signer('', algorithm);
    const { place } = await guarded(t, { '/': {} }, [own]);
    const claims = goodClaims(Date.now());
    t.is((await ask(place, bearer(tokenOf({ ...own, kid: 'new' }, claims)))).status, 200);
    t.is((await ask(place, bearer(tokenOf(own, claims, { kid: undefined })))).status, 200);
    t.is((await ask(place, bearer(tokenOf(signer('', algorithm), claims)))).status, 401);
  });

test('HAProxy takes as many keys as are allowed, whatever their names', async (t) => {
  const characters = Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at)).join('');
  const all = Array.from({ length: 30 }, (_, at) =>
    signer(`${String(at).padStart(2, '0')}${characters}${'%'.repeat(32)}`, 'ES256'),
  );
  const { place } = await guarded(t, { '/': {} }, all);
  const claims = goodClaims(Date.now());
  for (const each of all) t.is((await ask(place, bearer(tokenOf(each, claims)))).status, 200);
  const [first, second] = all as [Signer, Signer];
  t.is((await ask(place, bearer(tokenOf({ ...second, kid: first.kid }, claims)))).status, 401);
});

test('Members get claims in headers, and never what the client sends under these names', async (t) => {
  const { place } = await guarded(t, { '/': { headers: HEADERS } });
  const claims = { ...goodClaims(Date.now()), sub: 'Zoë', groups: ['a b', 'c', 7, true] };
  const forged = {
    'X-User': 'root',
    x_user: 'root',
    'X.User': 'root',
    'x-missing': 'root',
    X_Missing: 'root',
  };
  const { status, echo } = await ask(place, {
    ...forged,
    ...bearer(tokenOf(EC, claims)),
    connection: 'close, X-User',
  });
  t.is(status, 200);
  t.is(Buffer.from(echo?.headers['x-user'] ?? '', 'latin1').toString(), 'Zoë');
  t.is(echo?.headers['x-groups'], 'a b,c,7,true');
  t.notRegex(JSON.stringify(echo?.headers), /root/);
  t.notRegex(echo?.headers.connection ?? '', /x-user/i);
});

test('Claims that do not fit into the room for headers let no client in', async (t) => {
  const { place } = await guarded(t, { '/': { headers: HEADERS } });
  const claimsOf = (bytes: number) => ({ ...goodClaims(Date.now()), sub: 'a'.repeat(bytes) });
  const fits = await ask(place, bearer(tokenOf(EC, claimsOf(4_000))));
  t.deepEqual([fits.status, fits.echo?.headers['x-user']?.length], [200, 4_000]);
  t.is((await ask(place, bearer(tokenOf(EC, claimsOf(6_500))))).status, 401);
});

test('A token stands where the route says, once', async (t) => {
  const { place } = await guarded(t, {
    '/cookie': { from: { kind: 'cookie', name: 'session' } },
    '/header': { from: { kind: 'header', name: 'x-token' } },
    '/bearer': {},
  });
  const token = tokenOf(RSA, goodClaims(Date.now()));
  const wrong = tokenOf({ ...signer('rsa', 'RS256') }, goodClaims(Date.now()));
  const statusOf = async (path: string, headers: Readonly<Record<string, string>>) =>
    (await ask(place, headers, path)).status;
  t.is(await statusOf('/cookie', { cookie: `a=b; session=${token}; c=d` }), 200);
  t.is(await statusOf('/cookie', { cookie: `session="${token}"` }), 200);
  t.is(await statusOf('/cookie', { cookie: `xsession=${token}` }), 401);
  t.is(await statusOf('/cookie', { cookie: `session=${token}; session=${wrong}` }), 401);
  t.is(await statusOf('/cookie', bearer(token)), 401);
  t.is(await statusOf('/header', { 'x-token': token }), 200);
  t.is(await statusOf('/header', { 'x-token': token, 'X-Token': wrong }), 401);
  t.is(await statusOf('/header', bearer(token)), 401);
  t.is(await statusOf('/bearer', { authorization: `bEARER   ${token}` }), 200);
  t.is(await statusOf('/bearer', { authorization: token }), 401);
  t.is(await statusOf('/bearer', { authorization: `Basic ${token}` }), 401);
  t.is(
    await statusOf('/bearer', { authorization: `Bearer ${token}`, Authorization: `Bearer ${wrong}` }),
    401,
  );
});

test('A token is alone under names that members take for the same', async (t) => {
  const { place } = await guarded(t, {
    '/cookie': { from: { kind: 'cookie', name: 'session' } },
    '/header': { from: { kind: 'header', name: 'x-token' } },
  });
  const token = tokenOf(RSA, goodClaims(Date.now()));
  const statusOf = async (path: string, headers: Readonly<Record<string, string>>) =>
    (await ask(place, headers, path)).status;
  t.is(await statusOf('/cookie', { cookie: `session=${token}; session =x` }), 401);
  t.is(await statusOf('/cookie', { cookie: `session=${token};\tsession\t=x` }), 401);
  t.is(await statusOf('/cookie', { cookie: `a session=${token}` }), 401);
  t.is(await statusOf('/cookie', { cookie: `session=${token}; Session=x; xsession=y; sessions=z` }), 200);
  t.is(await statusOf('/header', { 'x-token': token, x_token: 'x' }), 401);
  t.is(await statusOf('/header', { x_token: token }), 401);
});

test('Members do not get a token that is removed, and all else that the client sends', async (t) => {
  const removed = { isRemoved: true, headers: [{ name: 'X-User', claim: 'sub' }] } as const;
  const { place } = await guarded(t, {
    '/cookie': { ...removed, from: { kind: 'cookie', name: 'session' } },
    '/header': { ...removed, from: { kind: 'header', name: 'x-token' } },
    '/bearer': removed,
    '/same': {
      isRemoved: true,
      from: { kind: 'header', name: 'x-token' },
      headers: [{ name: 'X-Token', claim: 'sub' }],
    },
  });
  const token = tokenOf(RSA, goodClaims(Date.now()));
  const gotten = async (path: string, headers: Readonly<Record<string, string>>) => {
    const { status, echo } = await ask(place, headers, path);
    const { cookie, authorization, 'x-user': user, 'x-token': own } = echo?.headers ?? {};
    return { status, cookie, authorization, user, own };
  };
  const others = { cookie: 'a=1; b="2 3"', authorization: 'Basic eDp5', own: 'x', user: 'ann', status: 200 };
  const { cookie, authorization, own } = others;
  t.deepEqual(await gotten('/bearer', { ...bearer(token), cookie, 'x-token': own }), {
    ...others,
    authorization: undefined,
  });
  t.deepEqual(await gotten('/header', { 'x-token': token, cookie, authorization }), {
    ...others,
    own: undefined,
  });
  const between = { cookie: `a=1;session=${token}; b="2 3"`, authorization, 'x-token': own };
  t.deepEqual(await gotten('/cookie', between), others);
  t.deepEqual(await gotten('/cookie', { ...between, cookie: `session="${token}"` }), {
    ...others,
    cookie: undefined,
  });
  t.is((await gotten('/same', { 'x-token': token })).own, 'ann');
  t.is((await ask(place, bearer('x'), '/bearer')).status, 401);
});

test('A route whose keys HAProxy does not have lets no client in', async (t) => {
  const { place } = await guarded(t, { '/': { keys: 'configmap default/others' }, '/none': { keys: '' } });
  const headers = bearer(tokenOf(RSA, goodClaims(Date.now())));
  for (const path of ['/', '/none'])
    t.deepEqual([(await ask(place, headers, path)).status, (await ask(place, {}, path)).status], [403, 403]);
});

test('Keys that a command has not read let no client in', async (t) => {
  const { place } = await guarded(t, { '/': {} }, []);
  t.is((await ask(place, bearer(tokenOf(RSA, goodClaims(Date.now()))))).status, 403);
  t.is((await ask(place, {}, '/open')).status, 200);
});

test('A reload takes other keys, and the old ones verify no longer', async (t) => {
  const { place, haproxy, withKeys } = await guarded(t, { '/': {} });
  const next = signer('next', 'ES256');
  const claims = goodClaims(Date.now());
  await haproxy.reload(withKeys(EC, next));
  const statusOf = async (by: Signer) => (await ask(place, bearer(tokenOf(by, claims)))).status;
  // The worker that stops may still take connections that the kernel has given it, for some ten milliseconds.
  let refused = 0;
  for (let at = 0; at < 300 && refused < 30; at++) {
    refused = (await statusOf(RSA)) === 401 && (await statusOf(next)) === 200 ? refused + 1 : 0;
    await delay(10);
  }
  t.is(refused, 30);
  t.is(await statusOf(EC), 200);
});

test.serial(
  'Keys of a ConfigMap are followed, and `why` says what it makes of a token, without it',
  async (t) => {
    const host = await TestHost.create(t);
    const place = { address: host.address(1), port: VIP_PORT };
    const member = await startEcho(t, 'web');
    const spec = {
      addresses: [{ type: 'IPAddress', value: place.address }],
      listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
    };
    const [, slice = {}] = webObjects({ address: '', members: ['127.0.0.1'], portName: 'http' });
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'default', name: 'web' },
      spec: {
        type: 'ClusterIP',
        clusterIP: '10.96.0.1',
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      },
    };
    const jwt = `{issuer: "${ISSUER}", audiences: shop, keys: configmap/keys, headers: {X-User: sub}}`;
    const route = routeJson('shop', [{ name: 'edge' }]);
    await host.write('objects.yaml', [
      gatewayClassJson(),
      gatewayJson('edge', spec),
      { ...route, metadata: { ...(route.metadata as object), annotations: { 'headgate.io/jwt': jwt } } },
      service,
      { ...slice, ports: [{ name: 'http', port: Number(member.split(':')[1]), protocol: 'TCP' }] },
    ]);
    const keys = (data: Readonly<Record<string, string>>) =>
      host.write('keys.yaml', [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'keys' }, data },
      ]);
    await host.start();
    const of = (by: Signer) => tokenOf(by, goodClaims(Date.now()));
    const statusOf = async (by: Signer): Promise<number> => (await ask(place, bearer(of(by)))).status;
    await host.until('without keys it is closed', async () => (await statusOf(RSA)) === 403);
    await keys({ 'jwks.json': jwksOf(RSA) });
    await host.until('a token of its key lets in', async () => (await statusOf(RSA)) === 200);
    t.is(await statusOf({ ...EC, kid: 'rsa' }), 401);
    await keys({ 'ec.pem': pemOf(EC) });
    await host.until('another key counts', async () => (await statusOf(EC)) === 200);
    t.is(await statusOf(RSA), 401);

    const url = `http://${place.address}:${place.port}/`;
    const whyFor = (token: string) =>
      host.command('why', [url, '--header', `authorization: Bearer ${token}`]);
    const [right, wrong] = [of(EC), of(RSA)];
    const answers = [await host.command('why', [url]), await whyFor(right), await whyFor(wrong)];
    t.deepEqual(
      answers.map(({ status }) => status),
      [0, 0, 1],
    );
    t.regex(answers[0]?.stdout ?? '', /Open only to clients with a token of "https:\/\/id\.example\.org"/);
    t.regex(answers[2]?.stdout ?? '', /token +refused +the token .*: status 401/);
    const shown = answers.map(({ stdout, stderr }) => stdout + stderr).join('');
    for (const each of [...right.split('.'), ...wrong.split('.')]) t.false(shown.includes(each));

    await host.write('keys.yaml', []);
    await host.until('it is closed again', async () => (await statusOf(EC)) === 403);
  },
);
