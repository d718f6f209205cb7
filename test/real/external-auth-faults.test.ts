// Authorization servers that fail, hang and are replaced under load: no request is let in that they did not let in, and none fails
// while one of them serves. All kinds of request that a member may get.

import { once } from 'node:events';
import { Agent, createServer, request as httpRequest } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import type { ExternalAuth } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { type Authorizer, byPass, externalAuth, startAuthorizer } from '../support/traffic/authorizer.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, POOL, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';
/** RFC 6455, section 1.3. */
const [KEY, ACCEPT] = ['dGhlIHNhbXBsZSBub25jZQ==', 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='];

/** A member that counts what it gets, and answers an upgrade with all that it gets. */
async function startMember(t: ExecutionContext): Promise<{ place: string; bytes: () => number }> {
  let bytes = 0;
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on('end', () => response.end(String(request.headers['x-auth-user'] ?? '')));
  });
  server.on('upgrade', (request, socket) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ${ACCEPT}\r\n\r\n`,
    );
    socket.write(String(request.headers['x-auth-user']));
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

async function served(t: ExecutionContext, replicas: number, changes: Partial<ExternalAuth> = {}) {
  const auths: Authorizer[] = [];
  for (let at = 0; at < replicas; at++) auths.push(await startAuthorizer(t));
  for (const auth of auths)
    auth.answer = (response, question) => {
      response.setHeader('x-auth-user', 'ann');
      byPass(response, question);
    };
  const place = { address: '127.0.0.1', port: await freePort() };
  const entries = [entryOf('/', 'web', { externalAuth: externalAuth(changes) })];
  const sections = [sectionOf('http', '*', { [HOST]: entries })];
  const member = await startMember(t);
  const retry = { attempts: 2, codes: [] };
  await startRendered(t, [
    gatewayOf(place, sections, { asksServers: true }),
    poolOf('web', [member.place]),
    poolOf(
      'auth',
      auths.map((auth) => auth.place),
      { pool: { ...POOL, algorithm: 'least-connections', retry } },
    ),
  ]);
  return { place, auths, member };
}

function status(
  { address: host, port }: Place,
  isAllowed: boolean,
  { agent, body }: { readonly agent?: Agent; readonly body?: Iterable<Buffer> } = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host: HOST, ...(isAllowed && { 'x-pass': 'yes' }) };
    const method = body === undefined ? 'GET' : 'PUT';
    const sent = httpRequest(
      { host, port, method, path: '/', headers, ...(agent && { agent }) },
      (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
        response.on('error', reject);
      },
    );
    sent.on('error', reject);
    void (async () => {
      for (const chunk of body ?? []) if (!sent.write(chunk)) await once(sent, 'drain');
      sent.end();
    })();
  });
}

/** Clients that ask until the end, every other time without the right; counts by `allowed STATUS` and `refused STATUS`. */
function load(t: ExecutionContext, place: Place, clients: number) {
  const counts = new Map<string, number>();
  let isOver = false;
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  t.teardown(() => agent.destroy());
  const client = async (): Promise<void> => {
    for (let at = 0; !isOver; at++) {
      const isAllowed = at % 2 === 0;
      const answer = await status(place, isAllowed, { agent }).catch((error: Error) => error.message);
      const key = `${isAllowed ? 'allowed' : 'refused'} ${answer}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  };
  const all = Array.from({ length: clients }, client);
  return async (): Promise<ReadonlyMap<string, number>> => {
    isOver = true;
    await Promise.all(all);
    return counts;
  };
}

const ROLLS = 100;

test.serial(
  'Authorization servers that are replaced a hundred times under load let in what they allow, and nothing fails',
  async (t) => {
    const { place, auths } = await served(t, 2);
    const end = load(t, place, 4);
    for (let roll = 0; roll < ROLLS; roll++) {
      const at = roll % 2;
      const old = auths[at];
      if (old === undefined) throw new Error('There is no such server');
      await old.stop();
      await delay(20);
      const port = Number(old.place.split(':')[1]);
      const next = await startAuthorizer(t, port);
      next.answer = old.answer;
      auths[at] = next;
      await delay(20);
    }
    const counts = await end();
    t.log(Object.fromEntries(counts));
    t.deepEqual([...counts.keys()].sort(), ['allowed 200', 'refused 401']);
    t.true((counts.get('allowed 200') ?? 0) > ROLLS);
  },
);

test.serial(
  'An authorization server that hangs costs time, and neither lets a request in nor fails one',
  async (t) => {
    const { place, auths } = await served(t, 2);
    const [first] = auths;
    if (first === undefined) throw new Error('There is no server');
    first.answer = () => undefined;
    const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => status(place, at % 2 === 0)));
    t.deepEqual(
      answers,
      answers.map((_, at) => (at % 2 === 0 ? 200 : 401)),
    );
  },
);

test.serial('If all authorization servers hang, clients get 503', async (t) => {
  const { place, auths } = await served(t, 1);
  for (const auth of auths) auth.answer = () => undefined;
  t.is(await status(place, true), 503);
});

test.serial(
  'A slow authorization server is waited for, and a client that goes away meanwhile harms no other',
  async (t) => {
    const { place, auths } = await served(t, 1);
    for (const auth of auths)
      auth.answer = (response, question) => void setTimeout(() => byPass(response, question), 1_000);
    const gone = Array.from({ length: 20 }, () => {
      const socket = connect(place.port, place.address);
      socket.write(`GET / HTTP/1.1\r\nhost: ${HOST}\r\nx-pass: yes\r\n\r\n`);
      return socket;
    });
    await delay(300);
    for (const socket of gone) socket.destroy();
    t.deepEqual(await Promise.all([status(place, true), status(place, false)]), [200, 401]);
  },
);

const CHUNK = Buffer.alloc(1_048_576, 'x');
const CHUNKS = 100;

test.serial('An upload of a hundred megabytes follows the question, which has none of it', async (t) => {
  const { place, auths, member } = await served(t, 1);
  const body = Array.from({ length: CHUNKS }, () => CHUNK);
  t.is(await status(place, true, { body }), 200);
  t.is(member.bytes(), CHUNKS * CHUNK.length);
  t.deepEqual(
    auths[0]?.questions.map((question) => [question.method, question.body]),
    [['GET', '']],
  );
});

test.serial('A WebSocket is let in, or not, by the same question', async (t) => {
  const { place } = await served(t, 1);
  for (const [pass, expected] of [
    ['yes', /^HTTP\/1.1 101 .*\r\n\r\nannhello$/s],
    ['no', /^HTTP\/1.1 401 /],
  ] as const) {
    const socket = connect(place.port, place.address);
    socket.write(
      `GET / HTTP/1.1\r\nhost: ${HOST}\r\nx-pass: ${pass}\r\nx-auth-user: root\r\nconnection: upgrade, x-auth-user\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${KEY}\r\n\r\n`,
    );
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    for (let at = 0; at < 100 && !text.includes('\r\n\r\n'); at++) await delay(50);
    if (pass === 'yes') socket.write('hello');
    for (let at = 0; at < 100 && !expected.test(text); at++) await delay(50);
    t.regex(text, expected);
    socket.destroy();
  }
});

test.serial('Streams of HTTP/2, as of gRPC, are asked about one by one', async (t) => {
  const { place } = await served(t, 1);
  const session = connectHttp2(`http://${place.address}:${place.port}`);
  t.teardown(() => session.destroy());
  const call = async (isAllowed: boolean): Promise<unknown> => {
    const stream = session.request({
      ':authority': HOST,
      ':method': 'POST',
      ':path': '/pkg.Service/Method',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...(isAllowed && { 'x-pass': 'yes' }),
    });
    stream.end('message');
    const [headers] = await once(stream, 'response');
    stream.resume();
    return headers[':status'];
  };
  const calls = Array.from({ length: 20 }, (_, at) => call(at % 2 === 0));
  t.deepEqual(
    await Promise.all(calls),
    Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? 200 : 401)),
  );
});
