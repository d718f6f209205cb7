// Authorization servers that lead back to the routes that ask them, and clients that leave their questions behind: a request is
// refused after a limited number of questions, and others are served meanwhile.

import { once } from 'node:events';
import { createServer, get as httpGet, type IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RenderedHaproxy, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { byPass, externalAuth, startAuthorizer } from '../support/traffic/authorizer.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, POOL, poolName, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const CONNECTIONS = 500;
/** The share of them that questions of a namespace may have. */
const MOST_OPEN = Math.floor(CONNECTIONS / 4);
const asked = { ...POOL, retry: { attempts: 2, codes: [500, 502, 503, 504] } };

/** What came in at HAProxy's own socket. */
async function questions({ paths }: RenderedHaproxy): Promise<number> {
  const [header = '', line = ''] = (await askOnce(paths.adminSocket, 'show stat headgate:auth 1 -1')).split(
    '\n',
  );
  return Number(line.split(',')[header.split(',').indexOf('stot')]);
}

interface Looped {
  readonly place: Place;
  readonly haproxy: RenderedHaproxy;
}

/** `servers`: the members of each authorization server, by its name. */
async function looped(
  t: ExecutionContext,
  servers: (place: Place) => Readonly<Record<string, string>>,
): Promise<Looped> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const all = servers(place);
  const entries = Object.keys(all).map((name) =>
    entryOf(`/${name}`, 'web', {
      externalAuth: externalAuth({ pool: poolName(name), host: '', path: '', isPrefix: true }),
    }),
  );
  const haproxy = await startRendered(
    t,
    [
      gatewayOf(place, [sectionOf('http', '*', { '*': [entryOf('/open', 'web'), ...entries] })], {
        asksServers: true,
      }),
      poolOf('web', [await startEcho(t, 'web')]),
      ...Object.entries(all).map(([name, member]) => poolOf(name, [member], { pool: asked })),
    ],
    { maxConnections: CONNECTIONS },
  );
  return { place, haproxy };
}

/** `path` is refused with 503, and `/open` is served meanwhile, each time within a second. */
async function refuses(t: ExecutionContext, { place }: Looped, path: string): Promise<void> {
  const get = async (url: string): Promise<number> =>
    (await request(place, url, { headers: { host: 'a.example.org' } })).status;
  let isOver = false;
  const { address: host, port } = place;
  const refused = once(httpGet({ host, port, path, headers: { host: 'a.example.org' } }), 'response')
    .then(([response]: IncomingMessage[]) => response?.statusCode)
    .finally(() => {
      isOver = true;
    });
  do {
    const began = performance.now();
    t.is(await get('/open'), 200);
    t.true(performance.now() - began < 1_000);
    await delay(50);
  } while (!isOver);
  t.is(await refused, 503);
}

test('A service that is the route itself is asked once', async (t) => {
  const all = await looped(t, ({ address, port }) => ({ a: `${address}:${port}` }));
  await refuses(t, all, '/a');
  t.is(await questions(all.haproxy), 1);
  await refuses(t, all, '/a');
});

test('Two services, each behind a route that asks the other, are asked once', async (t) => {
  const switching = createServer((incoming, response) => {
    const url = incoming.url?.replace(/^\/(a|b)/, (name) => (name === '/a' ? '/b' : '/a'));
    void request(all.place, url ?? '/', { headers: incoming.headers as Record<string, string> }).then(
      ({ status }) => response.writeHead(status).end(),
    );
  }).listen(0, '127.0.0.1');
  await once(switching, 'listening');
  t.teardown(() => switching.close());
  const member = `127.0.0.1:${(switching.address() as AddressInfo).port}`;
  const all = await looped(t, () => ({ a: member, b: member }));
  await refuses(t, all, '/a');
  t.true((await questions(all.haproxy)) <= 3);
});

test('A service that asks the route again on its own takes a share of the connections, and no more', async (t) => {
  let deepest = 0;
  const own = createServer((incoming, response) => {
    const url = `${incoming.url}/x`;
    deepest = Math.max(deepest, url.length);
    void request(all.place, url, { headers: { host: 'a.example.org' } }).then(
      ({ status }) => response.writeHead(status || 500).end(),
      () => response.writeHead(500).end(),
    );
  }).listen(0, '127.0.0.1');
  await once(own, 'listening');
  t.teardown(() => own.close());
  const all = await looped(t, () => ({ a: `127.0.0.1:${(own.address() as AddressInfo).port}` }));
  await refuses(t, all, '/a');
  // Each of them is asked three times, until the first one has been asked for long enough.
  t.log(await questions(all.haproxy), deepest / 2);
  t.true(deepest <= 4 * MOST_OPEN);
  await refuses(t, all, '/a');
});

test('Clients that leave while the service is asked do not take the questions of others', async (t) => {
  const auth = await startAuthorizer(t);
  auth.answer = (response, question) => void setTimeout(() => byPass(response, question), 300);
  const { place } = await looped(t, () => ({ a: auth.place }));
  for (let round = 0; round < 3; round++) {
    const session = connectHttp2(`http://127.0.0.1:${place.port}`).on('error', () => undefined);
    await once(session, 'connect');
    const streams = Array.from({ length: 2 * MOST_OPEN }, () =>
      session.request({ ':path': '/a', ':authority': 'a.example.org' }).on('error', () => undefined),
    );
    await delay(100);
    for (const stream of streams) stream.close(8);
    await delay(30);
    session.destroy();
  }
  t.true(auth.questions.length >= MOST_OPEN);
  await delay(200);
  const headers = { host: 'a.example.org', 'x-pass': 'yes' };
  t.is((await request(place, '/a', { headers })).status, 200);
});
