// Authorization servers that fail, hang and are replaced under load: no request is let in that they did not let in, and none fails
// while one of them serves.

import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import type { ExternalAuth } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { type Authorizer, byPass, externalAuth, startAuthorizer } from '../support/traffic/authorizer.ts';
import { startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, POOL, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';

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
  const retry = { attempts: 2, codes: [] };
  await startRendered(t, [
    gatewayOf(place, sections, { asksServers: true }),
    poolOf('web', [await startEcho(t, 'web')]),
    poolOf(
      'auth',
      auths.map((auth) => auth.place),
      { pool: { ...POOL, algorithm: 'least-connections', retry } },
    ),
  ]);
  return { place, auths };
}

function status({ address: host, port }: Place, isAllowed: boolean, agent?: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host: HOST, ...(isAllowed && { 'x-pass': 'yes' }) };
    const sent = httpRequest({ host, port, headers, ...(agent && { agent }) }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
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
      const answer = await status(place, isAllowed, agent).catch((error: Error) => error.message);
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

test('Authorization servers that are replaced a hundred times under load let in what they allow, and nothing fails', async (t) => {
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
});

test('An authorization server that hangs costs time, and neither lets a request in nor fails one', async (t) => {
  const { place, auths } = await served(t, 2);
  const [first] = auths;
  if (first === undefined) throw new Error('There is no server');
  first.answer = () => undefined;
  const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => status(place, at % 2 === 0)));
  t.deepEqual(
    answers,
    answers.map((_, at) => (at % 2 === 0 ? 200 : 401)),
  );
});

test('If all authorization servers hang, clients get 503', async (t) => {
  const { place, auths } = await served(t, 1);
  for (const auth of auths) auth.answer = () => undefined;
  t.is(await status(place, true), 503);
});

test('A slow authorization server is waited for, and a client that goes away meanwhile harms no other', async (t) => {
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
});
