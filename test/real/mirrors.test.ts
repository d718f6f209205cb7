// Copies of requests (`RequestMirror`) at the real HAProxy: which are made, and that none holds up a request, or copies for others.

import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import type { HeaderChanges, RouteSection } from '../../agent/model/routes.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { routed } from '../support/haproxy/routed-haproxy.ts';
import { type Answer, answerOf, type Echo, request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, forwardTo, gatewayOf, poolName, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const host = 'a.example.org';
const changes = (given: Partial<HeaderChanges>): HeaderChanges => ({
  set: [],
  add: [],
  remove: [],
  ...given,
});
const allTo = (service: string) => ({ pool: poolName(service), numerator: 1, denominator: 1 });
const mirrored = (service: string): readonly RouteSection[] => [
  sectionOf('http', '*', { [host]: [entryOf('/', forwardTo('a', { mirrors: [allTo(service)] }))] }),
];

test('Copies of requests go to other pools, as many as the route says, and delay no request', async (t) => {
  const copies: Echo[] = [];
  const place = await routed(
    t,
    ['a', 'b', 'c'],
    [
      sectionOf('http', '*', {
        [host]: [
          entryOf(
            '/all',
            forwardTo('a', {
              rewrite: { hostname: '', path: { kind: 'prefix', value: '/new' } },
              requestHeaders: changes({ set: [{ name: 'X-Set', value: 'yes' }] }),
              mirrors: [
                { pool: poolName('b'), numerator: 1, denominator: 1 },
                { pool: poolName('c'), numerator: 1, denominator: 2 },
              ],
            }),
          ),
          entryOf(
            '/slow',
            forwardTo('a', { mirrors: [{ pool: poolName('c'), numerator: 1, denominator: 1 }] }),
          ),
        ],
      }),
    ],
    (echo) => copies.push(echo),
  );
  const countOf = (member: string): number => copies.filter((each) => each.member === member).length;
  const forged = { host, 'x-headgate-pool': poolName('c'), 'x-a': '1' };
  for (let at = 0; at < 40; at++) {
    const { echo } = await request(place, '/all/x?y=1', { headers: forged });
    t.is(echo?.member, 'a');
  }
  await eventually(
    async () => countOf('b'),
    (count) => count === 40,
  );
  t.true(countOf('c') > 5 && countOf('c') < 35, String(countOf('c')));
  const copy = copies.find(({ member }) => member === 'b');
  t.is(copy?.url, '/new/x?y=1');
  t.is(copy?.headers.host, host);
  t.is(copy?.headers['x-set'], 'yes');
  t.is(copy?.headers['x-a'], '1');
  t.is(copy?.headers['x-headgate-pool'], undefined);
  copies.length = 0;
  const body = 'x=1&y=2';
  const length = { 'content-length': String(body.length) };
  await request(place, '/all/post', { method: 'POST', headers: { host, ...length }, body });
  await eventually(
    async () => copies.find(({ member }) => member === 'b')?.body,
    (got) => got === body,
  );
  // A request that waited for its copy would have no answer in time.
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => request(place, '/slow', { headers: { host, 'x-delay-in-c': '60000' } })),
  );
  t.true(answers.every(({ echo }) => echo?.member === 'a'));
});

/** `a` serves, and what `b` gets are copies. */
async function withCopies(t: ExecutionContext): Promise<{ place: Place; copies: readonly Echo[] }> {
  const copies: Echo[] = [];
  const place = await routed(t, ['a', 'b'], mirrored('b'), (echo) => {
    if (echo.member === 'b') copies.push(echo);
  });
  return { place, copies };
}

/** A POST whose body comes in parts, `pauseMs` before each but the first. */
async function slowPost(
  { address, port }: Place,
  headers: Readonly<Record<string, string>>,
  parts: readonly string[],
  pauseMs: number,
): Promise<Answer & { readonly raw: string }> {
  const socket = connect(port, address);
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /post HTTP/1.1\r\n${lines.join('')}connection: close\r\n\r\n`);
  const closed = once(socket, 'close');
  let raw = '';
  socket.setEncoding('latin1');
  socket.on('error', () => undefined);
  socket.on('data', (text) => {
    raw += text;
  });
  for (const [at, part] of parts.entries()) {
    if (at > 0) await delay(pauseMs);
    socket.write(part, 'latin1');
  }
  await closed;
  return { ...answerOf(raw), raw };
}

test('A body that comes more slowly than a copy may wait reaches its member, without a copy', async (t) => {
  const { place, copies } = await withCopies(t);
  const parts = Array.from({ length: 6 }, (_, at) => String(at).repeat(1_000));
  const body = parts.join('');
  const { status, echo } = await slowPost(place, { 'content-length': '6000' }, parts, 400);
  t.deepEqual([status, echo?.member, echo?.body], [200, 'a', body]);
  // The next one is copied, so that one of the slow request would have come before.
  await request(place, '/next', { method: 'POST', headers: { host, 'content-length': '1' }, body: 'x' });
  await eventually(
    async () => copies.map(({ url }) => url),
    (urls) => urls.includes('/next'),
  );
  t.deepEqual(
    copies.map(({ url }) => url),
    ['/next'],
  );
});

test('A small body in two packets is copied', async (t) => {
  const { place, copies } = await withCopies(t);
  const { echo } = await slowPost(place, { 'content-length': '8' }, ['one,', 'two.'], 50);
  t.is(echo?.body, 'one,two.');
  await eventually(
    async () => copies.map(({ body }) => body),
    ([body]) => body === 'one,two.',
  );
});

test('A client that waits for status 100 is asked for its body by the member, not held up', async (t) => {
  const { place, copies } = await withCopies(t);
  const socket = connect(place.port, place.address);
  socket.setEncoding('latin1');
  let raw = '';
  socket.on('data', (text) => {
    raw += text;
  });
  socket.write(
    `POST /post HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 4\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n`,
  );
  await eventually(
    async () => raw,
    (text) => text.startsWith('HTTP/1.1 100 '),
  );
  socket.write('body');
  await once(socket, 'close');
  const { status, echo } = answerOf(raw.slice(raw.indexOf('\r\n\r\n') + 4));
  t.deepEqual([status, echo?.body], [200, 'body']);
  await request(place, '/next', { headers: { host } });
  await eventually(
    async () => copies.map(({ url }) => url),
    (urls) => urls.includes('/next'),
  );
  t.deepEqual(copies.length, 1);
});

test('A stream of gRPC begins at its member before the client has ended it', async (t) => {
  const copies: Echo[] = [];
  const place = { address: '127.0.0.1', port: await freePort() };
  const members = { a: await startStreaming(t), b: await startEcho(t, 'b', (echo) => copies.push(echo)) };
  await startRendered(t, [
    gatewayOf(place, mirrored('b')),
    ...Object.entries(members).map(([service, member]) => poolOf(service, [member])),
  ]);
  const session = connectHttp2(`http://${place.address}:${place.port}`);
  t.teardown(() => session.destroy());
  for (const [type, more] of [
    ['application/grpc', {}],
    ['application/grpc+proto', { 'content-length': '12' }],
    ['text/plain', {}],
  ] as const) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/echo.Echo/Chat',
      ':authority': host,
      'content-type': type,
      ...more,
    });
    stream.setEncoding('latin1');
    stream.write('first;');
    // The member's answer is there while the request is open.
    const [headers] = await once(stream, 'response');
    t.is(headers[':status'], 200, type);
    stream.end('second');
    let text = '';
    for await (const chunk of stream) text += chunk;
    t.is(text, 'first;second', type);
  }
  await request(place, '/next', { headers: { host } });
  await eventually(
    async () => copies.map(({ url }) => url),
    (urls) => urls.includes('/next'),
  );
  t.is(copies.length, 1);
});

test('A pool of copies that does not answer holds up its own copies only', async (t) => {
  const copies: Echo[] = [];
  const place = { address: '127.0.0.1', port: await freePort() };
  const silent = ['s1', 's2', 's3', 's4', 's5'];
  const pools = [
    poolOf('a', [await startEcho(t, 'a')]),
    poolOf('b', [await startEcho(t, 'b', (echo) => copies.push(echo))]),
  ];
  for (const service of silent) pools.push(poolOf(service, [await startSilent(t)]));
  const entry = (service: string) => entryOf(`/${service}`, forwardTo('a', { mirrors: [allTo(service)] }));
  const routes = { [host]: ['b', ...silent].map(entry) };
  await startRendered(t, [gatewayOf(place, [sectionOf('http', '*', routes)]), ...pools]);
  // As many as wait for one pool, and then more.
  for (let at = 0; at < 100; at++)
    await Promise.all(silent.map((service) => request(place, `/${service}`, { headers: { host } })));
  for (let at = 0; at < 20; at++) await request(place, `/b/${at}`, { headers: { host } });
  await eventually(
    async () => copies.length,
    (count) => count === 20,
  );
  t.pass();
});

/** Takes connections and never answers: `address:port`. */
async function startSilent(t: ExecutionContext): Promise<string> {
  return listening(
    t,
    createServer((socket) => socket.on('error', () => undefined).resume()),
  );
}

/** Answers at once, and with what it gets as long as it gets it. */
async function startStreaming(t: ExecutionContext): Promise<string> {
  return listening(
    t,
    createHttpServer((incoming, response) => {
      response.flushHeaders();
      incoming.pipe(response);
    }),
  );
}

async function listening(t: ExecutionContext, server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('A request with as many headers as HAProxy takes has no copy, and ends no HAProxy', async (t) => {
  const copies: Echo[] = [];
  const place = await routed(t, ['a', 'b'], mirrored('b'), (echo) => copies.push(echo));
  for (let count = 80; count <= 98; count++) {
    const headers = Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, '1']));
    const { status } = await request(place, `/${count}`, { headers: { host, ...headers } });
    t.true([200, 400].includes(status), `${count} headers: ${status}`);
  }
  await request(place, '/last', { headers: { host } });
  await eventually(
    async () => copies.filter(({ member }) => member === 'b').map(({ url }) => url),
    (urls) => urls.includes('/80') && urls.includes('/last'),
  );
  t.false(copies.some(({ member, url }) => member === 'b' && url === '/95'));
});
