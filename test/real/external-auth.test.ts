// Routes whose requests a service must let in (ExternalAuth, auth-url), at the real HAProxy: nothing but its yes lets a request in.

import { once } from 'node:events';
import { request as clientRequest, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { haproxyVersion } from '../../agent/haproxy/socket/version.ts';
import type { AuthCache, ExternalAuth, RouteEntry } from '../../agent/model/routes.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { TestHost } from '../support/host/agent.ts';
import { type Authorizer, externalAuth, startAuthorizer } from '../support/traffic/authorizer.ts';
import { type Answer, request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { entryOf, gatewayOf, POOL, poolOf, sectionOf } from '../support/values/routes.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';

interface Guarded {
  readonly place: Place;
  readonly auth: Authorizer;
}

/** `/` asks the service, and `/open` does not. */
async function guarded(
  t: ExecutionContext,
  changes: Partial<ExternalAuth> = {},
  { more = [], asksServers = true }: { more?: readonly RouteEntry[]; asksServers?: boolean } = {},
): Promise<Guarded> {
  const auth = await startAuthorizer(t);
  const place = { address: '127.0.0.1', port: await freePort() };
  const entries = [
    ...more,
    entryOf('/open', 'web'),
    entryOf('/', 'web', { externalAuth: externalAuth(changes) }),
  ];
  const gateway = gatewayOf(place, [sectionOf('http', '*', { [HOST]: entries })], {
    ...(asksServers && { asksServers: true }),
  });
  const pools = [
    poolOf('web', [await startEcho(t, 'web')]),
    poolOf('auth', [auth.place], { pool: { ...POOL, retry: { attempts: 2, codes: [] } } }),
  ];
  await startRendered(t, [gateway, ...pools]);
  return { place, auth };
}

const ask = (
  place: Place,
  path = '/a?b=1',
  headers: Readonly<Record<string, string>> = {},
  options: { readonly method?: string; readonly body?: string } = {},
): Promise<Answer> => request(place, path, { headers: { host: HOST, ...headers }, ...options });

const PASS = { 'x-pass': 'yes' };

test('A request is let in if the service says so, and no other', async (t) => {
  const { place, auth } = await guarded(t);
  t.is((await ask(place, '/a', PASS)).echo?.url, '/a');
  const { status, echo, body } = await ask(place);
  t.deepEqual([status, echo, body], [401, undefined, 'not authorized\n']);
  t.is((await ask(place, '/open')).status, 200);
  t.is(auth.questions.length, 2);
});

test('Only a status that lets in lets in: each other one is 401, 403 or 503', async (t) => {
  const { place, auth } = await guarded(t);
  const expected = {
    ...{ 200: 200, 202: 200, 204: 200, 206: 200, 299: 200, 300: 503, 302: 503, 304: 503, 400: 503, 401: 401 },
    ...{ 403: 403, 404: 503, 407: 503, 418: 503, 429: 503, 500: 503, 502: 503, 503: 503, 599: 503 },
  };
  for (const [status, wanted] of Object.entries(expected)) {
    auth.answer = (response) => response.writeHead(Number(status), { location: '/elsewhere' }).end();
    const { status: got, echo, headers } = await ask(place);
    t.deepEqual([got, echo !== undefined], [wanted, wanted === 200], `the service answers ${status}`);
    t.is(headers.location, undefined);
  }
});

test('An answer that is 200 only lets in with 200', async (t) => {
  const { place, auth } = await guarded(t, { letsIn: '200' });
  auth.answer = (response) => response.writeHead(200).end();
  t.is((await ask(place)).status, 200);
  auth.answer = (response) => response.writeHead(202).end();
  t.is((await ask(place)).status, 503);
});

test('A service that is away, breaks off, or sends what is no answer lets no client in', async (t) => {
  const { place, auth } = await guarded(t);
  const faults: Record<string, Authorizer['answer']> = {
    'breaks off': (response) => void response.socket?.destroy(),
    'sends rubbish': (response) => void response.socket?.end('200 OK\r\n\r\n'),
    'ends within its headers': (response) => void response.socket?.end('HTTP/1.1 200 OK\r\nx-a: '),
    'ends within its body': (response) =>
      void response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'),
    'has a header with a zero': (response) =>
      void response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-auth-user: a\0b\r\n\r\n'),
    'has a body without an end': (response) => void response.writeHead(200).end('x'.repeat(100_000)),
    'has headers without an end': (response) =>
      void response.writeHead(200, { 'x-auth-user': 'x'.repeat(15_000) }).end(),
  };
  for (const [name, fault] of Object.entries(faults)) {
    auth.answer = fault;
    const { status, echo } = await ask(place);
    t.deepEqual([status, echo], [503, undefined], `the service ${name}`);
  }
  await auth.stop();
  t.is((await ask(place)).status, 503);
});

test('An answer whose body ends with its connection, or does not end, counts by its head', async (t) => {
  const { place, auth } = await guarded(t);
  const heads = {
    'HTTP/1.0 200 OK\r\nx-auth-user: ann\r\n': 200,
    'HTTP/1.1 202 Accepted\r\nconnection: close\r\nx-auth-user: ann\r\n': 200,
    'HTTP/1.0 401 Unauthorized\r\nset-cookie: csrf=1\r\n': 401,
    'HTTP/1.0 403 Forbidden\r\n': 403,
    'HTTP/1.0 302 Found\r\nlocation: /x\r\n': 503,
    'HTTP/1.0 500 Error\r\n': 503,
  };
  for (const [head, expected] of Object.entries(heads))
    for (const [kind, send] of Object.entries({
      'ends at once': (socket: Socket) => socket.end(`${head}\r\n`),
      'has a body': (socket: Socket) => socket.end(`${head}\r\nhello`),
      'does not end': (socket: Socket) => socket.write(`${head}\r\n${'x'.repeat(1_000_000)}`),
    })) {
      auth.answer = ({ socket }) => void (socket && send(socket));
      const began = performance.now();
      const { status, echo } = await ask(place);
      t.deepEqual([status, echo?.headers['x-auth-user']], [expected, expected === 200 ? 'ann' : undefined]);
      t.true(performance.now() - began < 3_000, `${head} ${kind}`);
    }
});

test('Without the part of the configuration that asks, no client is let in', async (t) => {
  const { place, auth } = await guarded(t, {}, { asksServers: false });
  t.is((await ask(place, '/a', PASS)).status, 403);
  t.is(auth.questions.length, 0);
  t.is((await ask(place, '/open')).status, 200);
});

test('The service gets the request without its body, and what HAProxy says of it', async (t) => {
  const { place, auth } = await guarded(t);
  const forged = {
    'X-Original-URL': 'http://evil/',
    X_Original_URL: 'http://evil/',
    'X-Original-Method': 'GET',
    'X-Auth-Request-Redirect': '/evil',
    'X-Forwarded-For': '192.0.2.1',
    'X-Forwarded-Uri': '/evil',
    'X-Forwarded-Proto': 'https',
    'X-Real-IP': '192.0.2.1',
    'X-Headgate-Pool': 'pool:default:web:tcp:80:v4',
    'X-Headgate-Method': 'DELETE',
    Connection: 'keep-alive, x-original-url, cookie',
    Range: 'bytes=0-1',
    'If-None-Match': '*',
    TE: 'trailers',
    Upgrade: 'websocket',
    Cookie: 'session=1',
    'Content-Length': '5',
    ...PASS,
  };
  const { echo } = await ask(place, '/a/%61?b=1&c=%20', forged, { method: 'PUT', body: 'hello' });
  t.deepEqual([echo?.method, echo?.body], ['PUT', 'hello']);
  const [question] = auth.questions;
  t.deepEqual([question?.method, question?.url, question?.body], ['GET', '/check', '']);
  const { headers = {} } = question ?? {};
  t.is(headers.host, 'auth.example.org');
  t.is(headers['x-original-url'], `http://${HOST}/a/%61?b=1&c=%20`);
  t.is(headers['x-original-method'], 'PUT');
  t.is(headers['x-auth-request-redirect'], '/a/%61?b=1&c=%20');
  t.is(headers['x-forwarded-for'], '127.0.0.1');
  t.is(headers['x-real-ip'], '127.0.0.1');
  t.is(headers['x-forwarded-proto'], 'http');
  t.is(headers['x-forwarded-host'], HOST);
  t.is(headers['x-sent-from'], 'headgate');
  t.is(headers.cookie, 'session=1');
  const gone = ['x_original_url', 'x-forwarded-uri', 'x-headgate-pool', 'x-headgate-method', 'range', 'te'];
  for (const name of [...gone, 'if-none-match', 'upgrade', 'content-length', 'transfer-encoding'])
    t.is(headers[name], undefined, name);
});

test('Members get the named headers of the answer, and never those of the client', async (t) => {
  const { place, auth } = await guarded(t);
  auth.answer = (response) =>
    response.writeHead(200, { 'x-auth-user': 'ann', 'x-auth-secret': '1', 'content-length': '0' }).end();
  const forged = {
    'X-Auth-User': 'root',
    X_Auth_User: 'root',
    'x.auth.user': 'root',
    'X-Auth_Groups': 'admins',
    'X-Auth-Groups': 'admins',
    Connection: 'close, X-Auth-User',
  };
  const { echo } = await ask(place, '/', forged);
  t.is(echo?.headers['x-auth-user'], 'ann');
  for (const name of ['x_auth_user', 'x.auth.user', 'x-auth_groups', 'x-auth-groups', 'x-auth-secret'])
    t.is(echo?.headers[name], undefined, name);
  t.false(/x-auth-user/i.test(echo?.headers.connection ?? ''), echo?.headers.connection);
});

test("Without a list, members get all headers of the answer but those of its connection and body, and HAProxy's own", async (t) => {
  const { place, auth } = await guarded(t, { responseHeaders: undefined });
  auth.answer = (response) =>
    response
      .writeHead(200, {
        'x-one': '1',
        'x-two': ['2', '3'],
        host: 'evil',
        'content-type': 'text/evil',
        'set-cookie': 'a=1',
        connection: 'close',
        'x-forwarded-for': '192.0.2.1',
        'ssl-client-verify': 'SUCCESS',
        'X-SSL-Client-CN': 'root',
        'x-forwarded-user': 'ann',
      })
      .end('body');
  const { echo } = await ask(place, '/', { 'x-one': 'forged', 'content-type': 'text/plain' });
  t.is(echo?.headers['x-one'], '1');
  t.is(echo?.headers['x-two'], '2, 3');
  t.deepEqual([echo?.headers.host, echo?.headers['content-type']], [HOST, 'text/plain']);
  t.is(echo?.headers['set-cookie'], undefined);
  t.is(echo?.headers['x-forwarded-for'], '127.0.0.1');
  t.is(echo?.headers['x-forwarded-user'], 'ann');
  t.false(Object.keys(echo?.headers ?? {}).some((name) => name.includes('ssl-client')));
});

test('Headers of an answer for which there is no room let no client in', async (t) => {
  const { place, auth } = await guarded(t);
  auth.answer = (response) => response.writeHead(200, { 'x-auth-user': 'x'.repeat(7_000) }).end();
  const big = { 'x-big': 'y'.repeat(6_000), 'content-length': '300000' };
  const { status, echo } = await ask(place, '/', big, { method: 'POST', body: 'z'.repeat(300_000) });
  t.deepEqual([status, echo?.headers['x-auth-user']?.length, echo?.body.length], [200, 7_000, 300_000]);
  auth.answer = (response) => response.writeHead(200, { 'x-auth-user': 'x'.repeat(9_000) }).end();
  t.is((await ask(place, '/')).status, 503);
});

test('A request that is too long to be asked about gets 414 or 431, and a shorter one its answer', async (t) => {
  const { place, auth } = await guarded(t);
  const { status, echo } = await ask(place, '/', { ...PASS, 'x-big': 'y'.repeat(14_900) });
  t.deepEqual([status, echo], [431, undefined]);
  t.is(auth.questions.length, 0);
  const lengthsOf = async (send: (length: number) => Promise<Answer>) => {
    const found = new Map<number, number[]>();
    for (let length = 4_000; length < 15_000; length += 250) {
      const answer = await send(length);
      found.set(answer.status, [...(found.get(answer.status) ?? []), length]);
    }
    return found;
  };
  const ofUrls = await lengthsOf((length) => ask(place, `/${'a'.repeat(length)}`, PASS));
  t.deepEqual([...ofUrls.keys()], [200, 414]);
  t.true(Math.max(...(ofUrls.get(200) ?? [])) > 7_000);
  const ofHeaders = await lengthsOf((length) => ask(place, '/', { ...PASS, 'x-big': 'y'.repeat(length) }));
  t.deepEqual([...ofHeaders.keys()], [200, 431]);
  t.true(Math.max(...(ofHeaders.get(200) ?? [])) > 14_000);
  const few = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`x-${at}`, '1']));
  const ofMany = await lengthsOf((length) =>
    ask(place, '/', { ...PASS, ...few, 'x-big': 'y'.repeat(length) }),
  );
  // HAProxy itself refuses the longest.
  t.deepEqual([...ofMany.keys()].slice(0, 2), [200, 431]);
  t.is(ofMany.get(503), undefined);
});

test('Trailers of a client reach no member with HAProxy 3.2 and newer', async (t) => {
  const trailers: unknown[] = [];
  const member = createServer(async (request, response) => {
    for await (const _ of request);
    trailers.push(request.trailers);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(member, 'listening');
  t.teardown(() => member.close());
  const { port } = member.address() as AddressInfo;
  const place = { address: '127.0.0.1', port: await freePort() };
  const gateway = gatewayOf(place, [sectionOf('http', '*', { [HOST]: [entryOf('/', 'web')] })]);
  await startRendered(t, [gateway, poolOf('web', [`127.0.0.1:${port}`])]);
  const headers = { host: HOST, trailer: 'x-auth-request-user', 'transfer-encoding': 'chunked' };
  const { address: host } = place;
  const sent = clientRequest({ host, port: place.port, method: 'POST', headers, agent: false });
  sent.addTrailers({ 'x-auth-request-user': 'root' });
  sent.end('body');
  const [response] = await once(sent, 'response');
  response.resume();
  const { text } = await haproxyVersion(haproxyExecutable);
  const isDropped = Number.parseFloat(text) >= 3.2;
  t.deepEqual(trailers, [isDropped ? {} : { 'x-auth-request-user': 'root' }]);
});

test('A request with as many headers as HAProxy takes is not let in, and ends no HAProxy', async (t) => {
  const { place, auth } = await guarded(t, { responseHeaders: undefined });
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, '1']));
  t.is((await ask(place, '/', { ...PASS, ...many(70) })).status, 200);
  for (let count = 76; count <= 98; count++) {
    const { status } = await ask(place, '/', { ...PASS, ...many(count) });
    t.true([200, 400, 431].includes(status), `${count} headers: ${status}`);
  }
  t.is((await ask(place, '/', { ...PASS, ...many(95) })).status, 431);
  for (let count = 80; count <= 101; count++) {
    auth.answer = (response) => response.writeHead(200, many(count)).end();
    const { status } = await ask(place);
    t.true([200, 503].includes(status), `an answer with ${count} headers: ${status}`);
  }
  t.is((await ask(place, '/open')).status, 200);
});

test('Cookies of the service reach the client, with each answer if the author wants it', async (t) => {
  const set = { 'set-cookie': ['a=1; Path=/', 'b=2; HttpOnly'] };
  const { place, auth } = await guarded(t, {}, { more: [entryOf('/gone', { kind: 'answer', status: 404 })] });
  auth.answer = (response) => response.writeHead(202, set).end();
  t.is((await ask(place)).headers['set-cookie'], 'a=1; Path=/, b=2; HttpOnly');
  auth.answer = (response) =>
    response.writeHead(401, { ...set, 'www-authenticate': ['Basic realm="x"', 'Bearer'] }).end('body');
  const { status, headers, echo } = await ask(place);
  t.deepEqual([status, echo, headers['set-cookie']], [401, undefined, 'a=1; Path=/, b=2; HttpOnly']);
  t.is(headers['www-authenticate'], 'Basic realm="x", Bearer');
});

const CACHE: AuthCache = {
  variables: ['http_authorization', 'cookie_session'],
  credentials: ['http_authorization', 'cookie_session'],
  seconds: [
    [200, 60],
    [401, 60],
  ],
};

test('An answer counts for the credentials, the host and the method that it was given for, and for no others', async (t) => {
  const { place, auth } = await guarded(t, { cache: CACHE });
  auth.answer = (response, { headers }) =>
    response.writeHead(/good/.test(JSON.stringify(headers)) ? 200 : 401, { 'x-auth-user': 'u' }).end();
  const questions = async (
    headers: Readonly<Record<string, string>>,
    status: number,
    options = {},
  ): Promise<number> => {
    const before = auth.questions.length;
    const answer = await ask(place, '/a', headers, options);
    t.deepEqual(
      [answer.status, answer.echo?.headers['x-auth-user']],
      [status, status === 200 ? 'u' : undefined],
    );
    return auth.questions.length - before;
  };
  const good = { authorization: 'Bearer good' };
  t.is(await questions(good, 200), 1);
  t.is(await questions(good, 200), 0);
  t.is(await questions({ ...good, 'x-auth-user': 'root' }, 200), 0, 'the header of the client is replaced');
  t.is(await questions({ authorization: 'Bearer bad' }, 401), 1);
  t.is(await questions({ authorization: 'Bearer bad' }, 401), 0);
  t.is(await questions({ authorization: 'Bearer bad', cookie: 'session=good' }, 200), 1);
  t.is(await questions({ ...good, cookie: 'session=x' }, 200), 1);
  t.is(await questions({ ...good, cookie: 'a=1;  session = x ; b' }, 200), 0);
  t.is(await questions({ ...good, cookie: 'session=x; session=y' }, 200), 1);
  t.is(await questions(good, 200, { method: 'DELETE' }), 1);
  t.is(await questions({ ...good, host: `${HOST}:80` }, 200), 1);
});

test('A request without credentials is asked about each time, whatever the service says', async (t) => {
  const { place, auth } = await guarded(t, { cache: CACHE });
  auth.answer = (response) => response.writeHead(200).end();
  for (const headers of [{}, { authorization: '' }, { cookie: 'session=; other=1' }]) {
    auth.questions.length = 0;
    for (let at = 0; at < 3; at++) t.is((await ask(place, '/a', headers)).status, 200);
    t.is(auth.questions.length, 3, JSON.stringify(headers));
  }
  auth.answer = (response) => response.writeHead(403).end();
  t.is((await ask(place, '/a')).status, 403);
});

test('Answers that set a cookie, that their service wants kept nowhere, or that depend on more are not kept', async (t) => {
  const { place, auth } = await guarded(t, { cache: CACHE });
  for (const [at, [name, value, asked]] of (
    [
      ['set-cookie', 'a=1', 2],
      ['cache-control', 'max-age=60, No-Store', 2],
      ['cache-control', 'private', 2],
      ['vary', 'Accept-Encoding, X-Tenant', 2],
      ['vary', '*', 2],
      ['vary', 'Accept-Encoding, Origin', 1],
      ['cache-control', 'max-age=60', 1],
    ] as const
  ).entries()) {
    auth.questions.length = 0;
    auth.answer = (response) => response.writeHead(200, { [name]: value }).end();
    const authorization = `Bearer ${at}`;
    for (let again = 0; again < 2; again++) t.is((await ask(place, '/a', { authorization })).status, 200);
    t.is(auth.questions.length, asked, `${name}: ${value}`);
  }
  for (const status of [403, 500, 302, 204]) {
    auth.questions.length = 0;
    auth.answer = (response) => response.writeHead(status).end();
    for (let again = 0; again < 2; again++) await ask(place, '/a', { authorization: `Bearer ${status}` });
    t.true(auth.questions.length >= 2, String(status));
  }
});

test('An answer counts no longer than its author wants', async (t) => {
  const seconds = [[200, 4]] as const;
  const { place, auth } = await guarded(t, { cache: { ...CACHE, seconds } });
  auth.answer = (response) => response.writeHead(200, { 'x-auth-user': 'u'.repeat(7_000) }).end();
  const asks = async (authorization: string): Promise<void> => {
    t.is((await ask(place, '/a', { authorization })).status, 200);
  };
  await asks('Bearer 1');
  await asks('Bearer 1');
  t.is(auth.questions.length, 1);
  auth.answer = (response) => response.writeHead(401).end();
  let status = 200;
  for (let at = 0; at < 100 && status === 200; at++) {
    await delay(100);
    ({ status } = await ask(place, '/a', { authorization: 'Bearer 1' }));
  }
  t.is(status, 401);
});

test('The memory of answers has a bound: what it had is asked again', async (t) => {
  const { place, auth } = await guarded(t, { cache: CACHE });
  auth.answer = (response) => response.writeHead(200, { 'x-auth-user': 'u'.repeat(7_000) }).end();
  const asked = async (number: number): Promise<number> => {
    const before = auth.questions.length;
    t.is((await ask(place, '/a', { authorization: `Bearer ${number}` })).status, 200);
    return auth.questions.length - before;
  };
  for (let number = 0; number < 1_000; number++) t.is(await asked(number), 1);
  t.is(await asked(0), 0);
  for (let number = 1_000; number < 1_200; number++) t.is(await asked(number), 1);
  t.is(await asked(0), 1);
});

test('Clients that are not let in are sent to the sign-in page, with what they asked for in one parameter', async (t) => {
  const signIn = 'https://$host/start?rd=$scheme://$http_host$escaped_request_uri&x=$request_uri';
  const { place, auth } = await guarded(t, { refusal: { ...externalAuth().refusal, signIn } });
  auth.answer = (response) => response.writeHead(401, { 'set-cookie': 'csrf=1' }).end();
  const { status, headers, echo } = await ask(place, '/a?b=1&rd=https://evil');
  t.deepEqual([status, echo], [302, undefined]);
  const uri = '%2Fa%3Fb%3D1%26rd%3Dhttps%3A%2F%2Fevil';
  t.is(headers.location, `https://${HOST}/start?rd=http://${HOST}${uri}&x=${uri}`);
  t.is(headers['set-cookie'], 'csrf=1');
  const long = await ask(place, `/${'a?'.repeat(1_800)}`);
  t.deepEqual(
    [long.status, long.headers.location],
    [302, `https://${HOST}/start?rd=http://${HOST}%2F&x=%2F`],
  );
  auth.answer = (response) => response.writeHead(403).end();
  t.is((await ask(place)).status, 403);
});

test('HTTPRoutes pass redirects of the service on, ask with the path of the request, and send named headers only', async (t) => {
  const { place, auth } = await guarded(t, {
    ...{ host: '', path: '/prefix', isPrefix: true, letsIn: '200', method: 'of-request' },
    requestHeaders: ['cookie', 'x-forwarded-for'],
    refusal: { signIn: '', redirect: '', passesRedirects: true, alwaysSetsCookies: true },
  });
  auth.answer = (response) =>
    response.writeHead(302, { location: 'https://login.example.org/?a=1', 'set-cookie': 'csrf=1' }).end();
  const headers = { cookie: 'a=1', authorization: 'Bearer 1', 'x-other': '1', x_forwarded_for: '1' };
  const answer = await ask(place, '/a?b=1', headers, { method: 'DELETE' });
  t.deepEqual([answer.status, answer.headers.location], [302, 'https://login.example.org/?a=1']);
  t.is(answer.headers['set-cookie'], 'csrf=1');
  const [question] = auth.questions;
  t.deepEqual([question?.method, question?.url], ['DELETE', '/prefix/a?b=1']);
  const { host, cookie, authorization } = question?.headers ?? {};
  t.deepEqual([host, cookie, authorization], [HOST, 'a=1', 'Bearer 1']);
  t.is(question?.headers['x-forwarded-for'], '127.0.0.1');
  for (const name of ['x-other', 'x-original-url', 'x_forwarded_for', 'x-headgate-pool'])
    t.is(question?.headers[name], undefined, name);
  for (const method of ['HEAD', 'PATCH', 'OPTIONS', 'POST']) await ask(place, '/', {}, { method });
  t.deepEqual(
    auth.questions.slice(1).map((each) => each.method),
    ['HEAD', 'PATCH', 'OPTIONS', 'POST'],
  );
});

test('A variable in the query of the question is one parameter, whatever the client asks for', async (t) => {
  const { place, auth } = await guarded(t, { path: '/check?group=users&uri=$request_uri' });
  t.is((await ask(place, '/a?x=1&group=admins%23', PASS)).status, 200);
  const { searchParams } = new URL(`http://auth${auth.questions[0]?.url}`);
  t.deepEqual(searchParams.getAll('group'), ['users']);
  t.is(searchParams.get('uri'), '/a?x=1&group=admins%23');
});

test('An HTTPRoute that gets the filter asks from then on, and `why` names the service', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(10), port: VIP_PORT };
  const auth = await startAuthorizer(t);
  const spec = {
    addresses: [{ type: 'IPAddress', value: place.address }],
    listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
  };
  const pool = (name: string, address: string) => {
    const ports = [{ name: 'http', port: Number(address.split(':')[1]), protocol: 'TCP' }];
    const metadata = { namespace: 'default', name, labels: { 'kubernetes.io/service-name': name } };
    return [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { namespace: 'default', name },
        spec: {
          type: 'ClusterIP',
          clusterIP: '10.96.0.1',
          ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        },
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata,
        addressType: 'IPv4',
        ports,
        endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
      },
    ];
  };
  await host.write('objects.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', spec),
    ...pool('web', await startEcho(t, 'web')),
    ...pool('auth', auth.place),
  ]);
  const externalAuthOf = (name: string) => ({
    type: 'ExternalAuth',
    externalAuth: {
      protocol: 'HTTP',
      backendRef: { name, port: 80 },
      http: { path: '/check', allowedHeaders: ['X-Pass'] },
    },
  });
  const route = (filters: readonly object[]) =>
    host.write('route.yaml', [
      routeJson('shop', [{ name: 'edge' }], {
        rules: [{ filters, backendRefs: [{ name: 'web', port: 80 }] }],
      }),
    ]);
  await route([]);
  await host.start();
  await host.until('it is open', async () => (await ask(place)).status === 200);
  await route([externalAuthOf('auth')]);
  await host.until('it asks', async () => (await ask(place)).status === 401);
  t.is((await ask(place, '/a', PASS)).status, 200);
  t.is(auth.questions.at(-1)?.url, '/check/a');
  const why = await host.command('why', [`http://${place.address}:${place.port}/a`]);
  t.regex(
    why.stdout,
    /authorization +asked +that Service default\/auth, port 80, lets in \(\/check\/…, only by status 200\); otherwise its redirect, status 401/,
  );
  // Longer than rows stay that no rule needs.
  auth.answer = (response) => setTimeout(() => response.end(), 2_000);
  const slow = ask(place, '/slow', PASS);
  await eventually(
    async () => auth.questions.at(-1)?.url,
    (url) => url === '/check/slow',
  );
  const changed = {
    type: 'RequestHeaderModifier',
    requestHeaderModifier: { set: [{ name: 'x-b', value: '1' }] },
  };
  await route([externalAuthOf('auth'), changed]);
  t.is((await slow).status, 200, 'A request that waits for the service follows the rule of before');
  await route([externalAuthOf('missing')]);
  await host.until(
    'without the service it is closed',
    async () => (await ask(place, '/a', PASS)).status === 503,
  );
});
