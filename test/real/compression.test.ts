// Which answers of members HAProxy compresses.

import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import { brotliCompressSync, gunzipSync } from 'node:zlib';
import ava, { type ExecutionContext } from 'ava';
import type { Listener } from '../../agent/model/load-balancer.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { type Answer, request } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';
const TEXT = 'The same words again and again. '.repeat(1_000);
const BROTLI = brotliCompressSync(TEXT);

interface MemberAnswer {
  readonly status?: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
}

const HTML = { 'content-type': 'text/html; charset=utf-8' };
const ANSWERS: Readonly<Record<string, MemberAnswer>> = {
  '/html': { headers: { ...HTML, etag: '"v1"' } },
  '/json': { headers: { 'content-type': 'application/json' } },
  '/svg': { headers: { 'content-type': 'image/svg+xml' } },
  '/script': { headers: { 'content-type': 'text/javascript' } },
  '/small': { headers: HTML, body: 'ok' },
  '/empty': { headers: HTML, body: '' },
  '/image': { headers: { 'content-type': 'image/png' } },
  '/events': { headers: { 'content-type': 'text/event-stream' } },
  '/without-a-type': { headers: {} },
  '/compressed': { headers: { ...HTML, 'content-encoding': 'br' }, body: BROTLI },
  '/no-transform': { headers: { ...HTML, 'cache-control': 'no-transform' } },
  '/not-found': { status: 404, headers: HTML },
  '/part': { status: 206, headers: { ...HTML, 'content-range': `bytes 0-${TEXT.length - 1}/999999` } },
};

/** A member that answers each path in its way, and says in `x-accepts` what it was asked for. */
async function startMember(t: ExecutionContext): Promise<string> {
  const server = createServer(({ url = '', headers: asked }, response) => {
    const { status = 200, headers, body = TEXT } = ANSWERS[url] ?? { headers: {} };
    response.writeHead(status, { 'x-accepts': asked['accept-encoding'] ?? 'nothing', ...headers });
    response.end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

type Ask = (path: string, accepts?: string, method?: string) => Promise<Answer>;

function asker(place: Place): Ask {
  return (path, accepts, method = 'GET') =>
    request(place, path, {
      method,
      headers: { host: HOST, ...(accepts !== undefined && { 'accept-encoding': accepts }) },
    });
}

async function behindGateway(t: ExecutionContext, changes: Partial<Listener>): Promise<Ask> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const gateway = gatewayOf(place, [sectionOf('http', '*', { [HOST]: [entryOf('/', 'web')] })], changes);
  await startRendered(t, [gateway, poolOf('web', [await startMember(t)])]);
  return asker(place);
}

/** A listener with a pool of its own, as that of a Service in mode http. */
async function behindService(t: ExecutionContext, changes: Partial<Listener>): Promise<Ask> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const [member] = poolOf('web', [await startMember(t)]).listeners;
  const service = gatewayOf(place, [], { ...changes, ...(member && { pool: member.pool }) });
  await startRendered(t, [
    { ...service, listeners: service.listeners.map((listener) => ({ ...listener, routing: undefined })) },
  ]);
  return asker(place);
}

function unzipped({ body }: Answer): string {
  return gunzipSync(Buffer.from(body, 'latin1')).toString();
}

for (const [what, start] of [
  ['a Gateway', behindGateway],
  ['a Service', behindService],
] as const)
  test(`Behind ${what} a client that accepts gzip gets it, and another one the answer as it is`, async (t) => {
    const ask = await start(t, { compression: 'gzip' });
    for (const path of ['/html', '/json', '/svg', '/script']) {
      const answer = await ask(path, 'br, gzip');
      t.is(answer.status, 200);
      t.is(answer.headers['content-encoding'], 'gzip', path);
      t.true(answer.body.length < TEXT.length / 10, path);
      t.is(unzipped(answer), TEXT, path);
      t.regex(answer.headers.vary ?? '', /accept-encoding/i, path);
    }
    for (const accepts of [undefined, 'identity', 'br', 'gzip;q=0']) {
      const answer = await ask('/html', accepts);
      t.is(answer.headers['content-encoding'], undefined, accepts);
      t.is(answer.headers['content-length'] ?? String(answer.body.length), String(TEXT.length));
      t.is(answer.body, TEXT, accepts);
    }
  });

test('A strong ETag becomes weak in a compressed answer only, because its bytes are others', async (t) => {
  const ask = await behindGateway(t, { compression: 'gzip' });
  t.is((await ask('/html', 'gzip')).headers.etag, 'W/"v1"');
  t.is((await ask('/html')).headers.etag, '"v1"');
});

test('A small and an empty answer arrive whole, compressed or not', async (t) => {
  const ask = await behindGateway(t, { compression: 'gzip' });
  const small = await ask('/small', 'gzip');
  t.is(small.headers['content-encoding'] === 'gzip' ? unzipped(small) : small.body, 'ok');
  const empty = await ask('/empty', 'gzip');
  t.is(empty.headers['content-encoding'] === 'gzip' ? unzipped(empty) : empty.body, '');
  const head = await ask('/html', 'gzip', 'HEAD');
  t.is(head.status, 200);
  t.is(head.body, '');
});

test('What is compressed, a stream, an image, a part or an error stays as its member has sent it', async (t) => {
  const ask = await behindGateway(t, { compression: 'gzip' });
  const compressed = await ask('/compressed', 'gzip, br');
  t.is(compressed.headers['content-encoding'], 'br');
  t.deepEqual(Buffer.from(compressed.body, 'latin1'), BROTLI);
  for (const path of ['/image', '/events', '/without-a-type', '/no-transform', '/not-found', '/part']) {
    const answer = await ask(path, 'gzip');
    t.is(answer.headers['content-encoding'], undefined, path);
    t.is(answer.body, TEXT, path);
  }
});

test('Members learn what the client accepts, so that they may compress themselves', async (t) => {
  const ask = await behindGateway(t, { compression: 'gzip' });
  t.is((await ask('/html', 'gzip, br')).headers['x-accepts'], 'gzip, br');
});

test('Without compression the answer of a member stays as it is', async (t) => {
  const ask = await behindGateway(t, {});
  const answer = await ask('/html', 'gzip');
  t.is(answer.headers['content-encoding'], undefined);
  t.is(answer.headers.etag, '"v1"');
  t.is(answer.body, TEXT);
});
