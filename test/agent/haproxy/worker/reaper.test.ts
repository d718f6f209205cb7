import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { applyPlans } from '../../../../agent/haproxy/apply.ts';
import { planLoadBalancer } from '../../../../agent/haproxy/plan.ts';
import { readServers, serversOf } from '../../../../agent/haproxy/readback.ts';
import type { Running, RunningServer } from '../../../../agent/haproxy/running.ts';
import type { Command } from '../../../../agent/haproxy/socket/commands.ts';
import { Reaper } from '../../../../agent/haproxy/worker/reaper.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { Loopback, startRendered } from '../../../support/haproxy/rendered-haproxy.ts';
import { connectTo } from '../../../support/traffic/sockets.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const NAME = 'default:web:tcp:80:v4';
/** Milliseconds; not the default. */
const CONNECT = 300;

/** A real HAProxy in front of one real member, and a reaper. */
async function started(t: ExecutionContext, { drainTimeout = 3_600_000 } = {}) {
  const member = createServer((socket) => socket.on('error', () => undefined).pipe(socket));
  member.listen(0, '127.0.0.1');
  await once(member, 'listening');
  t.teardown(() => member.close());
  const { port } = member.address() as { port: number };

  const loopback = new Loopback();
  const withMembers = (...endpoints: Parameters<typeof endpoint>[]) =>
    loopback.bindable(
      loadBalancerOf(
        translated([
          service(),
          slice({ endpoints: endpoints.map((each) => endpoint(...each)), ports: [port] }),
        ]),
      ),
    );
  const full = await withMembers(['127.0.0.1']);
  const empty = await withMembers();
  const { worker } = await startRendered(t, [full]);

  const deleted: number[] = [];
  const errors: string[] = [];
  const reaper = new Reaper(worker, {
    drainTimeout: () => drainTimeout,
    connectTimeout: () => CONNECT,
    onDeleted: (count) => deleted.push(count),
    onError: (message) => errors.push(message),
  });
  t.teardown(() => reaper.close());
  const bring = async (desired: LoadBalancer): Promise<readonly Command[]> => {
    const plan = () =>
      planLoadBalancer({ key: desired.key, running: worker.running, before: full, after: desired });
    const { acknowledged, refused, lost } = await applyPlans(worker, [plan()], () => [plan()]);
    t.deepEqual([refused, lost], [[], undefined]);
    reaper.watch(acknowledged);
    return acknowledged;
  };
  const { listeners } = full;
  const { addresses: [address = ''] = [], port: listened = 0 } = listeners[0] ?? {};
  return {
    worker,
    reaper,
    deleted,
    errors,
    full,
    empty,
    withMembers,
    server: `127.0.0.1:${port}`,
    bring,
    /** A connection through HAProxy to the member, over which bytes have passed. */
    async client(): Promise<Socket> {
      const socket = await connectTo(address, listened);
      t.teardown(() => socket.destroy());
      socket.write('hello');
      await once(socket, 'data');
      return socket;
    },
    servers: async () => {
      let servers: ReadonlyMap<string, RunningServer> = new Map();
      await readServers(worker.runtime, [NAME], (_, answer) => {
        servers = serversOf(answer);
      });
      return [...servers];
    },
  };
}

test('Reaper deletes a removed server without connections', async (t) => {
  const { reaper, deleted, bring, empty, server, servers, worker } = await started(t);
  await bring(empty);
  t.is(reaper.waiting, 1);
  t.like(await servers(), [[server, { state: 'maint' }]]);
  await eventually(servers, (rows) => rows.length === 0);
  await eventually(
    async () => reaper.waiting,
    (count) => count === 0,
  );
  t.deepEqual(deleted, [1]);
  t.is(worker.running.get(NAME)?.servers.size, 0);
});

test('A server that comes back just before its deletion counts as in use', async (t) => {
  const { bring, empty, server, servers, worker, reaper } = await started(t);
  const { runtime, running } = worker;
  const send = runtime.send.bind(runtime);
  const back = { kind: 'SetServerState', backend: NAME, server, state: 'ready' } as const;
  // The command is on its way when the reaper finds the server in maintenance; its reply comes first.
  runtime.send = async (commands, options) => {
    if (!commands.some(({ kind }) => kind === 'DeleteServer')) return send(commands, options);
    const isBack = send([back]).then(() => running.fold(back));
    const replies = await send(commands, options);
    await isBack;
    return replies;
  };
  await bring(empty);
  await eventually(
    async () => reaper.waiting,
    (count) => count === 0,
  );
  t.like(await servers(), [[server, { state: 'ready' }]]);
  t.is(running.get(NAME)?.servers.get(server)?.state, 'ready');
});

test('A server that was removed later is deleted later', async (t) => {
  const { bring, empty, withMembers, server, servers, worker } = await started(t);
  const { runtime } = worker;
  const send = runtime.send.bind(runtime);
  const tried = new Map<string, number>();
  runtime.send = (commands, options) => {
    for (const command of commands)
      if (command.kind === 'DeleteServer' && !tried.has(command.server))
        tried.set(command.server, performance.now());
    return send(commands, options);
  };
  await bring(await withMembers(['127.0.0.1'], ['127.0.0.2']));
  await bring(await withMembers(['127.0.0.1']));
  await delay(500);
  const began = performance.now();
  await bring(empty);
  await eventually(servers, (rows) => rows.length === 0);
  const [[first = '', before = 0] = [], [second = '', after = 0] = []] = tried;
  t.deepEqual([first === server, second], [false, server]);
  t.true(before <= after && after - began >= CONNECT + 1_000, 'Never in a hurry');
});

test('Reaper does not delete a server before its last connection has ended', async (t) => {
  const { reaper, deleted, bring, empty, server, servers, client, worker } = await started(t);
  const socket = await client();
  const attemptIsOver = calledOnce(worker.running, 'markKept');
  await bring(empty);
  await attemptIsOver;
  t.is(worker.running.get(NAME)?.servers.get(server)?.state, 'maint', 'It is believed to be there again');
  t.like(await servers(), [[server, { state: 'maint' }]]);
  socket.write('still');
  const [echo] = await once(socket, 'data');
  t.is(String(echo), 'still');
  t.deepEqual(deleted, []);

  socket.destroy();
  await eventually(servers, (rows) => rows.length === 0);
  await eventually(
    async () => reaper.waiting,
    (count) => count === 0,
  );
  t.deepEqual(deleted, [1]);
});

test('After the drain timeout Reaper ends the connections of a server and deletes it', async (t) => {
  const { deleted, bring, empty, servers, client } = await started(t, { drainTimeout: 1_500 });
  const socket = await client();
  const began = performance.now();
  await bring(empty);
  await once(socket, 'close');
  t.true(performance.now() - began >= 1_450);
  await eventually(servers, (rows) => rows.length === 0);
  await eventually(
    async () => deleted,
    (counts) => counts.length === 1,
  );
});

test('Without a drain timeout connections end at once, but the server stays while a stream may retry it', async (t) => {
  const { bring, empty, servers, server, client, worker } = await started(t, { drainTimeout: 0 });
  const { runtime } = worker;
  const send = runtime.send.bind(runtime);
  const told: { readonly kind: string; readonly at: number }[] = [];
  runtime.send = (commands, options) => {
    for (const { kind } of commands) told.push({ kind, at: performance.now() });
    return send(commands, options);
  };
  const socket = await client();
  await bring(empty);
  await once(socket, 'close');
  t.like(await servers(), [[server, { state: 'maint' }]]);
  await eventually(servers, (rows) => rows.length === 0);
  const [maintenance, deletion] = ['SetServerState', 'DeleteServer'].map((kind) =>
    told.find((each) => each.kind === kind),
  );
  t.true((deletion?.at ?? 0) - (maintenance?.at ?? 0) >= CONNECT + 1_000);
});

test('Reaper keeps a server that comes back', async (t) => {
  const { reaper, deleted, bring, full, empty, server, servers } = await started(t);
  await bring(empty);
  await bring(full);
  await eventually(
    async () => reaper.waiting,
    (count) => count === 0,
  );
  t.like(await servers(), [[server, { state: 'ready' }]]);
  t.deepEqual(deleted, []);
});

test('Reaper keeps a server that comes back as draining', async (t) => {
  const { reaper, bring, empty, withMembers, server, servers } = await started(t);
  await bring(empty);
  await bring(await withMembers(['127.0.0.1', { terminating: true }], ['127.0.0.2']));
  await eventually(
    async () => reaper.waiting,
    (count) => count === 0,
  );
  t.deepEqual((await servers()).find(([name]) => name === server)?.[1].state, 'drain');
});

test('A server that is added during its deletion exists in the end', async (t) => {
  const { reaper, bring, full, empty, server, servers, worker } = await started(t);
  const isOnItsWay = calledOnce(worker.running, 'markGone');
  await bring(empty);
  await isOnItsWay;
  t.is(worker.running.get(NAME)?.servers.get(server)?.state, 'gone');
  t.deepEqual(
    (await bring(full)).map(({ kind }) => kind),
    ['AddServer', 'SetServerState', 'EnableFrontend'],
  );
  t.like(await servers(), [[server, { state: 'ready' }]]);
  await eventually(
    async () => reaper.waiting,
    (count) => count === 0,
  );
  t.is(worker.running.get(NAME)?.servers.get(server)?.state, 'ready');
});

test('A server that is added while HAProxy refuses its deletion exists in the end', async (t) => {
  const { bring, full, empty, server, servers, worker, client } = await started(t);
  const socket = await client();
  const isOnItsWay = calledOnce(worker.running, 'markGone');
  await bring(empty);
  await isOnItsWay;
  const plan = () => planLoadBalancer({ key: full.key, running: worker.running, before: full, after: full });
  const { refused, repaired, beyondRepair } = await applyPlans(worker, [plan()], () => [plan()]);
  t.like(refused, { length: 1, 0: { command: { kind: 'AddServer' } } });
  t.deepEqual([repaired, beyondRepair], [[NAME], []]);
  t.like(await servers(), [[server, { state: 'ready' }]]);
  socket.write('still');
  const [echo] = await once(socket, 'data');
  t.is(String(echo), 'still');
});

test('A new Reaper takes over servers that are in maintenance', async (t) => {
  const { worker, bring, empty, servers, reaper } = await started(t);
  reaper.close();
  await bring(empty);
  t.is((await servers()).length, 1);
  const next = new Reaper(worker, {
    drainTimeout: () => 0,
    connectTimeout: () => CONNECT,
    onDeleted: () => undefined,
    onError: t.fail,
  });
  t.teardown(() => next.close());
  t.is(next.waiting, 1);
  await eventually(servers, (rows) => rows.length === 0);
});

test('Reaper reports a lost connection and stops', async (t) => {
  const { worker, bring, empty, errors } = await started(t, { drainTimeout: 0 });
  const acknowledged = bring(empty);
  await acknowledged;
  worker.runtime.close();
  await eventually(
    async () => errors.length,
    (count) => count === 1,
  );
  t.is(errors.length, 1);
});

test('Reaper deletes many servers in small batches', async (t) => {
  const { worker, bring, withMembers, empty, servers, reaper, deleted } = await started(t, {
    drainTimeout: 1,
  });
  const many = Array.from({ length: 40 }, (_, at): [string] => [`127.0.1.${at + 1}`]);
  await bring(await withMembers(...many));
  t.is(worker.running.get(NAME)?.servers.size, 41);
  await bring(empty);
  await eventually(servers, (rows) => rows.length === 0);
  await eventually(
    async () => reaper.waiting,
    (count) => count === 0,
  );
  t.is(
    deleted.reduce((sum, count) => sum + count, 0),
    41,
  );
  t.true(deleted.every((count) => count <= 16));
});

/** Settles when the method is called for the first time, before anything else happens. */
function calledOnce(running: Running, method: 'markGone' | 'markKept'): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const original = running[method].bind(running);
  running[method] = (backend, server) => {
    original(backend, server);
    resolve();
  };
  return promise;
}
