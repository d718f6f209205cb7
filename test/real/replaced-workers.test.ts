// A worker that a reload has replaced has old rules: a client cannot use them by a connection of before.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import ava from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { request } from '../support/traffic/echo.ts';
import { connectRawHttp2 } from '../support/traffic/raw-http2.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';

test('A client that heeds no GOAWAY gets 421 for what it asks for later, and what it has asked for before continues', async (t) => {
  t.timeout(120_000);
  const member = createServer((asked, answer) => {
    if (asked.url !== '/events') return void answer.end('member');
    answer.write('begin');
    const timer = setInterval(() => answer.write('event'), 100);
    answer.on('close', () => clearInterval(timer));
  }).listen(0, '127.0.0.1');
  await once(member, 'listening');
  t.teardown(() => {
    member.closeAllConnections();
    member.close();
  });
  const place = { address: '127.0.0.1', port: await freePort() };
  const pool = poolOf('web', [`127.0.0.1:${(member.address() as AddressInfo).port}`]);
  const guarded = entryOf('/admin', { kind: 'answer', status: 403 });
  const of = (...entries: readonly ReturnType<typeof entryOf>[]) => [
    gatewayOf(place, [sectionOf('http', '*', { [HOST]: [...entries, entryOf('/', 'web')] })]),
    pool,
  ];
  const haproxy = await startRendered(t, of(), { hardStopAfter: 120_000 });
  const client = await connectRawHttp2(t, place);
  t.is(await client.get(HOST, '/events'), '200');
  t.is(await client.get(HOST, '/admin'), '200');
  await haproxy.reload(of(guarded));
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
  t.pass();
});
