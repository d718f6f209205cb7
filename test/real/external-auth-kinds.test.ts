// What may be behind an authorization server: connections that outlive it, streams of HTTP/2, gRPC, uploads; and headers of
// clients that no member may believe.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import ava, { type ExecutionContext } from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RenderedHaproxy, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { kubeNeeds, kubePrograms } from '../support/kube/kube.ts';
import { type Authorizer, byPass, externalAuth, startAuthorizer } from '../support/traffic/authorizer.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, POOL, poolOf, sectionOf } from '../support/values/routes.ts';

const BUILT = ['grpc-interop-client', 'grpc-interop-server'];
const test = requires(ava, { ...kubeNeeds(...BUILT), haproxy: true });

const HOST = 'shop.example.org';
const PASS = { 'x-pass': 'yes' };
/** RFC 6455, section 1.3. */
const [KEY, ACCEPT] = ['dGhlIHNhbXBsZSBub25jZQ==', 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='];

interface Guarded {
  readonly place: Place;
  readonly auth: Authorizer;
  readonly haproxy: RenderedHaproxy;
}

/** A route to this member whose requests are asked about. */
async function guarded(
  t: ExecutionContext,
  member: string,
  httpVersion: '1.1' | '2' = '1.1',
): Promise<Guarded> {
  const auth = await startAuthorizer(t);
  auth.answer = (response, question) => {
    response.setHeader('x-auth-user', 'ann');
    byPass(response, question);
  };
  const place = { address: '127.0.0.1', port: await freePort() };
  const entries = [entryOf('/', 'web', { externalAuth: externalAuth() })];
  const haproxy = await startRendered(t, [
    gatewayOf(place, [sectionOf('http', '*', { '*': entries })], { asksServers: true }),
    poolOf('web', [member], { pool: { ...POOL, httpVersion } }),
    poolOf('auth', [auth.place]),
  ]);
  return { place, auth, haproxy };
}

/** A member that counts what it gets, and answers an upgrade with the user's name and all that it gets. */
async function startMember(t: ExecutionContext): Promise<{ place: string; bytes: () => number }> {
  let bytes = 0;
  const server = createServer((incoming, response) => {
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    incoming.on('end', () => response.end(String(incoming.headers['x-auth-user'] ?? '')));
  });
  server.on('upgrade', ({ headers }, socket) => {
    const lines = ['HTTP/1.1 101 Switching Protocols', 'connection: upgrade', 'upgrade: websocket'];
    socket.write([...lines, `sec-websocket-accept: ${ACCEPT}`, '', headers['x-auth-user']].join('\r\n'));
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { place: `127.0.0.1:${(server.address() as AddressInfo).port}`, bytes: () => bytes };
}

interface WebSocketClient {
  readonly socket: Socket;
  readonly text: () => string;
}

function openWebSocket(t: ExecutionContext, { port, address }: Place, pass: string): WebSocketClient {
  const socket = connect(port, address);
  t.teardown(() => socket.destroy());
  const lines = [
    ...['GET /chat HTTP/1.1', `host: ${HOST}`, `x-pass: ${pass}`, 'x-auth-user: root'],
    ...['connection: upgrade, x-auth-user', 'upgrade: websocket', 'sec-websocket-version: 13'],
    ...[`sec-websocket-key: ${KEY}`, '', ''],
  ];
  socket.write(lines.join('\r\n'));
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return { socket, text: () => text };
}

const shows = ({ text }: WebSocketClient, pattern: RegExp): Promise<string> =>
  eventually(
    async () => text(),
    (all) => pattern.test(all),
  );

test('A WebSocket is let in, or not, by one question, and outlives the service', async (t) => {
  const { place, auth } = await guarded(t, (await startMember(t)).place);
  await shows(openWebSocket(t, place, 'no'), /^HTTP\/1.1 401 /);
  const open = openWebSocket(t, place, 'yes');
  await shows(open, /^HTTP\/1.1 101 [\s\S]*\r\n\r\nann$/);
  t.is(auth.questions.length, 2);
  await auth.stop();
  open.socket.write('hello');
  await shows(open, /\r\n\r\nannhello$/);
  await shows(openWebSocket(t, place, 'yes'), /^HTTP\/1.1 503 /);
  open.socket.write(' again');
  await shows(open, /annhello again$/);
});

test('Five hundred streams of one HTTP/2 connection are asked about one by one', async (t) => {
  const { place, auth } = await guarded(t, await startEcho(t, 'web'));
  const session = connectHttp2(`http://${place.address}:${place.port}`);
  t.teardown(() => session.destroy());
  const get = async (at: number): Promise<string> => {
    const stream = session.request({
      ':authority': HOST,
      ':path': `/${at}`,
      'x-auth-user': `forged-${at}`,
      ...(at % 2 === 0 && PASS),
    });
    const [headers] = await once(stream, 'response');
    let text = '';
    for await (const chunk of stream.setEncoding('utf8')) text += chunk;
    if (headers[':status'] !== 200) return `${at} ${headers[':status']}`;
    const echo = JSON.parse(text);
    return `${at} ${echo.url} ${echo.headers['x-auth-user']}`;
  };
  const numbers = Array.from({ length: 500 }, (_, at) => at);
  const answers: string[] = [];
  for (let at = 0; at < numbers.length; at += 100)
    answers.push(...(await Promise.all(numbers.slice(at, at + 100).map(get))));
  t.deepEqual(
    answers,
    numbers.map((at) => (at % 2 === 0 ? `${at} /${at} ann` : `${at} 401`)),
  );
  t.is(auth.questions.length, 500);
});

/** Cases of gRPC's own tests: https://github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md */
const GRPC_CASES = [
  ...['empty_unary', 'large_unary', 'client_streaming', 'server_streaming', 'ping_pong', 'empty_stream'],
  ...['cancel_after_begin', 'cancel_after_first_response', 'timeout_on_sleeping_server'],
  ...['status_code_and_message', 'special_status_message', 'custom_metadata', 'unimplemented_method'],
];

test("gRPC's own client calls its own server if the service lets it in, and no stream otherwise", async (t) => {
  t.timeout(120_000);
  const programs = await kubePrograms(BUILT);
  const port = await freePort();
  const server = spawn(programs['grpc-interop-server'] ?? '', ['-port', `${port}`], { stdio: 'ignore' });
  const ended = once(server, 'close');
  t.teardown(async () => {
    server.kill('SIGKILL');
    await ended;
  });
  const { place, auth } = await guarded(t, `127.0.0.1:${port}`, '2');
  const call = async (name: string, pass: string): Promise<readonly [number | null, string]> => {
    const target = ['-server_host', place.address, '-server_port', `${place.port}`];
    const flags = [...target, '-test_case', name, '-additional_metadata', `x-pass:${pass}`];
    const client = spawn(programs['grpc-interop-client'] ?? '', flags, {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    client.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
    });
    const [status] = await once(client, 'close');
    return [status, said];
  };
  await eventually(
    () => call('empty_unary', 'yes'),
    ([status]) => status === 0,
  );
  for (const name of GRPC_CASES) {
    const [status, said] = await call(name, 'yes');
    t.is(status, 0, `${name}: ${said.slice(0, 1_000)}`);
  }
  const before = auth.questions.length;
  t.true(before >= GRPC_CASES.length);
  t.true(auth.questions.every(({ body, method, headers }) => body + method + (headers.te ?? '') === 'GET'));
  for (const name of ['empty_unary', 'server_streaming', 'ping_pong']) {
    const [status, said] = await call(name, 'no');
    t.not(status, 0);
    // A client that still sends sees the end of the stream first.
    t.regex(said.slice(0, 1_000), /code = Unauthenticated|has error EOF while sending/, name);
  }
});

const CHUNK = Buffer.alloc(1_048_576, 'x');
const CHUNKS = 100;
const MOST_GROWTH_KB = 20_000;

async function residentKb({ worker }: RenderedHaproxy): Promise<number> {
  const status = await readFile(`/proc/${worker.runtime.worker.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]);
}

test('An upload of a hundred megabytes follows the question, and waits for it if it may', async (t) => {
  const member = await startMember(t);
  const { place, auth, haproxy } = await guarded(t, member.place);
  /** Its status, and the bytes that were sent. */
  const upload = async (headers: Readonly<Record<string, string>>): Promise<readonly [number, number]> => {
    const { address: host, port } = place;
    const sent = httpRequest({ host, port, method: 'PUT', headers: { host: HOST, ...headers } });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    let bytes = 0;
    let isOver = false;
    void answered.then(() => {
      isOver = true;
    });
    sent.on('error', () => undefined);
    if (headers.expect !== undefined) {
      sent.flushHeaders();
      await Promise.race([once(sent, 'continue'), answered]);
    }
    for (let at = 0; at < CHUNKS && !isOver; at++) {
      bytes += CHUNK.length;
      if (!sent.write(CHUNK)) await Promise.race([once(sent, 'drain'), answered]);
    }
    sent.end();
    const [response] = await answered;
    response.resume();
    return [response.statusCode ?? 0, bytes];
  };
  t.deepEqual(await upload(PASS), [200, CHUNKS * CHUNK.length]);
  t.is(member.bytes(), CHUNKS * CHUNK.length);
  const before = await residentKb(haproxy);
  const length = { 'content-length': String(CHUNKS * CHUNK.length) };
  t.deepEqual(await upload({ ...PASS, ...length, expect: '100-continue' }), [200, CHUNKS * CHUNK.length]);
  t.is(member.bytes(), 2 * CHUNKS * CHUNK.length);
  t.deepEqual(await upload({ ...length, expect: '100-continue' }), [401, 0]);
  const [status, bytes] = await upload(length);
  t.is(status, 401);
  t.true(bytes < CHUNKS * CHUNK.length);
  t.is(member.bytes(), 2 * CHUNKS * CHUNK.length);
  t.true(auth.questions.every(({ body, headers }) => body === '' && headers.expect === undefined));
  const grown = (await residentKb(haproxy)) - before;
  t.true(grown < MOST_GROWTH_KB, `${grown} kB`);
});

test('A member believes no name that a client has sent, however it is written and however often', async (t) => {
  const { place } = await guarded(t, await startEcho(t, 'web'));
  const names = [
    'X-Auth-User',
    'x-auth-user',
    'X-AUTH-USER',
    'X_Auth_User',
    'x_auth-user',
    'X-Auth_User',
    'x.auth.user',
  ];
  for (const connection of ['', 'x-auth-user', 'X-Auth-User, close', 'keep-alive, x_auth_user']) {
    const lines = names.flatMap((name) => [`${name}: root`, `${name}: admin`]);
    const socket = connect(place.port, place.address);
    socket.write(
      [
        ...['GET / HTTP/1.1', `host: ${HOST}`, 'x-pass: yes', ...lines],
        ...[`connection: ${connection}`, 'connection: close', '', ''],
      ].join('\r\n'),
    );
    let text = '';
    for await (const chunk of socket) text += chunk;
    const { headers } = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
    const believed = Object.entries(headers).filter(([name]) => /^x.auth.user$/i.test(name));
    t.deepEqual(believed, [['x-auth-user', 'ann']], connection);
  }
  const session = connectHttp2(`http://${place.address}:${place.port}`);
  t.teardown(() => session.destroy());
  const forged = { 'x-auth-user': ['root', 'admin'], x_auth_user: 'root', 'x.auth.user': 'root' };
  const stream = session.request({ ':authority': HOST, ':path': '/', ...PASS, ...forged });
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  const { headers } = JSON.parse(text);
  t.deepEqual(
    Object.entries(headers).filter(([name]) => /^x.auth.user$/i.test(name)),
    [['x-auth-user', 'ann']],
  );
});

test('A replica of the service that answers 500 costs a second question, and 302 and 401 count', async (t) => {
  const [good, bad] = [await startAuthorizer(t), await startAuthorizer(t)];
  bad.answer = (response) => response.writeHead(500).end();
  const place = { address: '127.0.0.1', port: await freePort() };
  const retry = { attempts: 2, codes: [500, 502, 503, 504] };
  await startRendered(t, [
    gatewayOf(
      place,
      [sectionOf('http', '*', { '*': [entryOf('/', 'web', { externalAuth: externalAuth() })] })],
      {
        asksServers: true,
      },
    ),
    poolOf('web', [await startEcho(t, 'web')]),
    poolOf('auth', [good.place, bad.place], { pool: { ...POOL, algorithm: 'least-connections', retry } }),
  ]);
  for (let at = 0; at < 20; at++) {
    const isAllowed = at % 2 === 0;
    const headers = { host: HOST, ...(isAllowed && PASS) };
    t.is((await request(place, '/', { headers })).status, isAllowed ? 200 : 401);
  }
  t.true(bad.questions.length > 0);
  for (const [status, expected] of [
    [302, 503],
    [401, 401],
  ] as const) {
    good.answer = (response) =>
      response.writeHead(status, { location: 'https://login/', 'set-cookie': 'csrf=1' }).end();
    const { status: got, headers } = await request(place, '/', { headers: { host: HOST } });
    t.deepEqual([got, headers.location], [expected, undefined]);
    t.is(headers['set-cookie'], expected === 401 ? 'csrf=1' : undefined);
  }
});

test('A service that speaks HTTP/2 is asked as well, with an answer that has no length', async (t) => {
  const asked: IncomingHttpHeaders[] = [];
  const server = createHttp2Server().on('stream', (stream, headers) => {
    asked.push(headers);
    const isAllowed = headers['x-pass'] === 'yes';
    stream.respond({ ':status': isAllowed ? 200 : 401, 'x-auth-user': 'ann' });
    stream.end(isAllowed ? 'welcome' : '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const place = { address: '127.0.0.1', port: await freePort() };
  const entries = [entryOf('/', 'web', { externalAuth: externalAuth() })];
  const member = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await startRendered(t, [
    gatewayOf(place, [sectionOf('http', '*', { '*': entries })], { asksServers: true }),
    poolOf('web', [await startEcho(t, 'web')]),
    poolOf('auth', [member], { pool: { ...POOL, httpVersion: '2' } }),
  ]);
  for (const headers of [PASS, {}, PASS]) {
    const { status, echo } = await request(place, '/', { headers: { host: HOST, ...headers } });
    t.deepEqual(
      [status, echo?.headers['x-auth-user']],
      'x-pass' in headers ? [200, 'ann'] : [401, undefined],
    );
  }
  t.deepEqual(
    asked.map((headers) => headers['x-original-url']),
    Array.from({ length: 3 }, () => `http://${HOST}/`),
  );
});
