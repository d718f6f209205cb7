// The judge of requests in the soak: it finds each kind of wrong answer, and nothing else.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer, type Server } from 'node:net';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../basics/requirements.ts';
import { until } from '../basics/until.ts';
import { Authority } from '../traffic/tls.ts';
import type { SoakReport, SoakTarget } from './soak-client.ts';
import { SoakClients } from './soak-clients.ts';

const test = requires(ava, { programs: ['openssl'] });
const ADDRESS = '127.0.0.1';

async function portOf(t: ExecutionContext, server: Server): Promise<number> {
  await once(server.listen(0, ADDRESS), 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Answers with this status and text. */
function web(t: ExecutionContext, status: number, text: string): Promise<number> {
  return portOf(
    t,
    createHttpServer((_, response) => response.writeHead(status, { connection: 'close' }).end(text)),
  );
}

/** After two requests to each of these targets. */
async function judged(
  t: ExecutionContext,
  ...targets: readonly Omit<SoakTarget, 'address'>[]
): Promise<SoakReport> {
  const start = (_: string, program: string, ...words: readonly string[]): ChildProcess =>
    spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  const clients = new SoakClients({ start });
  t.teardown(() => clients.stop());
  await clients.add(...targets.map((target) => ({ ...target, address: ADDRESS })));
  await until('all have ended twice', async () => {
    const { requests } = await clients.report();
    return targets.every(({ name }) => (requests[name] ?? 0) >= 2);
  });
  return clients.report();
}

test('An answer of a member that may answer, and a refusal where one must come, are right', async (t) => {
  const [member, refusal] = [await web(t, 200, '10.0.0.1:9001'), await web(t, 403, 'forbidden')];
  const report = await judged(
    t,
    { name: 'any address', kind: 'new', port: member, members: [':9001'] },
    { name: 'one of two', kind: 'kept', port: member, members: ['10.0.0.2:9001', '10.0.0.1:9001'] },
    { name: 'refused', kind: 'new', port: refusal, members: [] },
  );
  t.like(report, { failures: 0, passes: 0, failed: [], letThrough: [] });
});

for (const [what, status, text] of [
  ['a wrong member', 200, '10.0.0.9:9001'],
  ['a member of another Service', 200, '10.0.0.1:9002'],
  ['an error', 503, '10.0.0.1:9001'],
] as const)
  test(`It finds ${what}`, async (t) => {
    const port = await web(t, status, text);
    const report = await judged(t, { name: 'web', kind: 'new', port, members: ['10.0.0.1:9001'] });
    t.true(report.failures >= 2);
    t.is(report.passes, 0);
    t.true(report.failed[0]?.endsWith(` web: ${status} ${text}`), report.failed[0]);
  });

test('A status 421 is answered on another connection, and twice in a row it is a failure', async (t) => {
  const port = (times: number): Promise<number> => {
    let asked = 0;
    const isOver = (): boolean => ++asked % (times + 1) === 0;
    return portOf(
      t,
      createHttpServer((_, response) => response.writeHead(isOver() ? 200 : 421).end('10.0.0.1:9001')),
    );
  };
  const target = { kind: 'kept', members: ['10.0.0.1:9001'] } as const;
  const once = { ...target, name: 'once', port: await port(1) };
  t.is((await judged(t, once)).failures, 0);
  const twice = { ...target, name: 'twice', port: await port(2) };
  t.true((await judged(t, twice)).failures > 0);
});

test('It finds a connection that is refused, and one that is reset', async (t) => {
  const reset = await portOf(
    t,
    createServer((socket) => socket.resetAndDestroy()),
  );
  const closed = createServer();
  const port = await portOf(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  const members = [':9001'];
  const report = await judged(
    t,
    { name: 'refused', kind: 'new', port, members },
    { name: 'reset', kind: 'new', port: reset, members },
  );
  t.true(report.failed.some((line) => line.endsWith('refused: no answer ECONNREFUSED')));
  t.true(report.failed.some((line) => line.endsWith('reset: no answer ECONNRESET')));
});

test('It finds a client that is let in and must not be, whatever the answer says', async (t) => {
  const port = await web(t, 200, '10.0.0.1:9001');
  const report = await judged(t, { name: 'guarded', kind: 'new', port, members: [] });
  t.true(report.passes >= 2);
  t.is(report.failures, 0);
  t.true(report.letThrough[0]?.endsWith('guarded: 200 10.0.0.1:9001'), report.letThrough[0]);
});

test('It finds a certificate of another authority, and one of another name', async (t) => {
  const [right, wrong] = [await Authority.create(t), await Authority.create(t, 'other')];
  const { cert, key } = await right.issue({ names: ['shop.example.org'] });
  const port = await portOf(
    t,
    createTlsServer({ cert, key }, (_, response) => response.end('10.0.0.1:9001')),
  );
  const target = { kind: 'tls', port, members: [':9001'], ca: right.cert } as const;
  const report = await judged(
    t,
    { ...target, name: 'right', host: 'shop.example.org' },
    { ...target, name: 'name', host: 'blog.example.org' },
    { ...target, name: 'authority', host: 'shop.example.org', ca: wrong.cert },
  );
  t.deepEqual(
    new Set(report.failed.map((line) => line.split(' ')[1])),
    new Set(['name:', 'authority:']),
    report.failed.join('\n'),
  );
});
