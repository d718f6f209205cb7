// A worker that a reload has replaced has old rules: a client cannot use them by a connection of before.

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import type { RouteEntry } from '../../agent/model/routes.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { request } from '../support/traffic/echo.ts';
import { connectRawHttp2 } from '../support/traffic/raw-http2.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';
/** Longer than a connection is served after its first request to a replaced worker (templates/haproxy/routes.mustache). */
const REPLACED_MS = 7_000;

/** A host with one member, before and after a reload with a rule that closes /admin. */
async function served(t: ExecutionContext<unknown>, answers: RequestListener) {
  const member = createServer(answers).listen(0, '127.0.0.1');
  await once(member, 'listening');
  t.teardown(() => {
    member.closeAllConnections();
    member.close();
  });
  const place = { address: '127.0.0.1', port: await freePort() };
  const pool = poolOf('web', [`127.0.0.1:${(member.address() as AddressInfo).port}`]);
  const of = (...entries: readonly RouteEntry[]) => [
    gatewayOf(place, [sectionOf('http', '*', { [HOST]: [...entries, entryOf('/', 'web')] })]),
    pool,
  ];
  const haproxy = await startRendered(t, of(), { hardStopAfter: 120_000 });
  return { place, close: () => haproxy.reload(of(entryOf('/admin', { kind: 'answer', status: 403 }))) };
}

test('A client that heeds no GOAWAY gets 421 for what it asks for later, and what it has asked for before continues', async (t) => {
  t.timeout(120_000);
  const { place, close } = await served(t, (asked, answer) => {
    if (asked.url !== '/events') return void answer.end('member');
    answer.write('begin');
    const timer = setInterval(() => answer.write('event'), 100);
    answer.on('close', () => clearInterval(timer));
  });
  const client = await connectRawHttp2(t, place);
  t.is(await client.get(HOST, '/events'), '200');
  t.is(await client.get(HOST, '/admin'), '200');
  await close();
  await eventually(
    async () => (await request(place, '/admin', { headers: { host: HOST } })).status,
    (status) => status === 403,
  );
  await t.notThrowsAsync(
    eventually(
      () => client.get(HOST, '/admin'),
      (status) => status === '421',
    ),
  );
  t.is(await client.get(HOST, '/'), '421');
  const before = client.bytes();
  await eventually(
    async () => client.bytes(),
    (bytes) => bytes > before,
  );
  t.is((await request(place, '/', { headers: { host: HOST } })).status, 200);
});

test('A client that heeds GOAWAY, and one that had only connected, get what they first ask a replaced worker for', async (t) => {
  t.timeout(60_000);
  const { place, close } = await served(t, (asked, answer) => {
    if (asked.url === '/silent') answer.flushHeaders();
    else answer.end('member');
  });
  const session = connectHttp2(`http://${place.address}:${place.port}`);
  t.teardown(() => session.destroy());
  const get = (path: string) => session.request({ ':path': path, ':authority': HOST });
  const statusOf = async (stream: ClientHttp2Stream) => (await once(stream, 'response'))[0][':status'];
  const silent = get('/silent');
  t.is(await statusOf(silent), 200);
  const early = connect(place.port, place.address);
  t.teardown(() => early.destroy());
  await once(early, 'connect');
  await close();
  await delay(REPLACED_MS);
  // HAProxy 3.2 has told the client earlier, and this request would go to another connection.
  if (!session.closed)
    t.deepEqual(await Promise.all(['/', '/a', '/b'].map((path) => statusOf(get(path)))), [200, 200, 200]);
  await t.notThrowsAsync(
    eventually(
      () => Promise.resolve(session.closed),
      (isClosed) => isClosed,
    ),
    'GOAWAY came',
  );
  early.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  t.regex(await text(early), /^HTTP\/1\.1 200 [\s\S]*member/);
  t.false(silent.closed);
});
