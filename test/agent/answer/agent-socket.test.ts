import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  AgentSocketFile,
  type Answers,
  agentSocketPath,
  askAgent,
  type Orders,
  orderAgent,
  serveAgentSocket,
} from '../../../agent/answer/agent-socket.ts';
import { OwnFiles } from '../../../agent/host/own-files.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { silentLog } from '../../support/values/silent-log.ts';

async function runtimeDir(t: ExecutionContext<unknown>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'agent-socket-'));
  t.teardown(() => rm(directory, { recursive: true }));
  return directory;
}

async function served(t: ExecutionContext<unknown>, answers: Answers, orders?: Orders): Promise<string> {
  const path = agentSocketPath(await runtimeDir(t));
  const server = await serveAgentSocket(path, answers, orders);
  t.teardown(() => server.close());
  return path;
}

test('serveAgentSocket() answers questions and carries out orders', async (t) => {
  const path = await served(
    t,
    { why: (query) => ({ service: query.get('service') }) },
    { failover: async (query) => ({ force: query.get('force') }) },
  );
  t.deepEqual(await askAgent(path, 'why', { service: 'default/a b&c' }), { service: 'default/a b&c' });
  t.deepEqual(await orderAgent(path, 'failover', { force: 'true' }, 5_000), { force: 'true' });
  t.is((await stat(path)).mode & 0o777, 0o600);
});

test("askAgent() and orderAgent() fail with the agent's error message", async (t) => {
  const cannot = (): never => {
    throw new Error('It cannot be read');
  };
  const path = await served(t, { status: cannot }, { failover: async () => cannot() });
  const words = 'It cannot be read';
  await t.throwsAsync(askAgent(path, 'status'), { code: 'QUESTION_FAILED', message: words });
  await t.throwsAsync(orderAgent(path, 'failover', {}, 5_000), { code: 'ORDER_FAILED', message: words });
});

test('askAgent() says of a question that is too long that it is, and not that no agent answers', async (t) => {
  const path = await served(t, { why: () => ({}) });
  // With the headers and certificates of a client.
  t.deepEqual(await askAgent(path, 'why', { cert: 'a'.repeat(100_000) }), {});
  await t.throwsAsync(askAgent(path, 'why', { url: `https://a.example.org/${'a'.repeat(300_000)}` }), {
    code: 'QUESTION_FAILED',
    message: /^The question is too long/,
  });
});

test('serveAgentSocket() refuses an unknown name, a question as an order, and an order as a question', async (t) => {
  const path = await served(t, { status: () => ({}) }, { failover: async () => ({}) });
  for (const name of ['later', 'failover', 'toString'])
    await t.throwsAsync(askAgent(path, name), {
      code: 'QUESTION_FAILED',
      message: `This agent does not have "${name}"`,
    });
  await t.throwsAsync(orderAgent(path, 'status', {}, 5_000), { code: 'ORDER_FAILED' });
});

test('serveAgentSocket() answers 400 to an invalid path and 500 if the answer is not JSON, and continues', async (t) => {
  const path = await served(t, { count: () => 1n });
  for (const method of ['GET', 'POST']) t.is(await statusOf(path, method, '//'), 400);
  await t.throwsAsync(askAgent(path, 'count'), { code: 'QUESTION_FAILED', message: /BigInt/ });
  t.like(await askAgent(path, 'ping'), { pid: process.pid });
});

/** Sends a path that askAgent() would not send. */
function statusOf(socketPath: string, method: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, method, path, timeout: 10_000 }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked
      .on('timeout', () => asked.destroy(new Error('no answer')))
      .on('error', reject)
      .end();
  });
}

test('orderAgent() fails after its timeout', async (t) => {
  const path = agentSocketPath(await runtimeDir(t));
  const server = await serveAgentSocket(path, {}, { failover: () => new Promise(() => undefined) });
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { cause } = await t.throwsAsync(orderAgent(path, 'failover', {}, 50), { code: 'AGENT_UNREACHABLE' });
  t.is((cause as Error).message, 'no answer within 0.05 s');
});

test("askAgent() fails with the socket's path if no agent answers", async (t) => {
  const path = agentSocketPath(await runtimeDir(t));
  await t.throwsAsync(askAgent(path, 'status'), {
    code: 'AGENT_UNREACHABLE',
    message: `No agent answers at "${path}"`,
  });
});

test('serveAgentSocket() replaces the socket of a stopped agent, not of one that answers', async (t) => {
  const path = agentSocketPath(await runtimeDir(t));
  await writeFile(path, '');
  const server = await serveAgentSocket(path, { status: () => 'first' });
  t.teardown(() => server.close());
  await t.throwsAsync(serveAgentSocket(path, { status: () => 'second' }), { code: 'AGENT_RUNNING' });
  t.is(await askAgent(path, 'status'), 'first');
});

async function opened(t: ExecutionContext<unknown>) {
  const directory = await mkdtemp(join(tmpdir(), 'agent-socket-'));
  const folder = join(directory, 'run');
  const path = join(folder, 'agent.sock');
  const clock = new FakeClock();
  const order = Promise.withResolvers<string>();
  const repaired = { count: 0 };
  const socket = new AgentSocketFile(path, { status: () => 'first' }, { failover: () => order.promise });
  const ownFiles = new OwnFiles({
    files: [socket],
    onRestored: () => repaired.count++,
    log: silentLog(),
    clock,
  });
  await socket.restore();
  ownFiles.start();
  t.teardown(async () => {
    ownFiles.close();
    socket.close();
    await rm(directory, { recursive: true });
  });
  /** Advances the clock until the server with this answer is there: sockets take their own time. */
  const answers = async (answer: string): Promise<void> => {
    for (;;) {
      await clock.advance(1_000);
      if ((await askAgent(path, 'status').catch(() => '')) === answer) return;
    }
  };
  return { folder, path, clock, order, repaired, socket, answers };
}

const removals: readonly (readonly [string, (path: string, folder: string) => Promise<void>])[] = [
  ['it was removed', (path) => rm(path)],
  ['its folder was removed', (_, folder) => rm(folder, { recursive: true })],
  [
    'another file replaced it',
    async (path) => {
      await rm(path);
      await writeFile(path, '');
    },
  ],
];
for (const [what, remove] of removals)
  test(`The agent opens its socket again if ${what}`, async (t) => {
    const { folder, path, clock, repaired, answers } = await opened(t);
    await clock.advance(10_000);
    t.is(repaired.count, 0);
    await remove(path, folder);
    await answers('first');
    await clock.advance(10_000);
    t.is(repaired.count, 1);
  });

test('A pending order gets its outcome after the socket was removed and opened again', async (t) => {
  const { path, order, answers } = await opened(t);
  const outcome = orderAgent(path, 'failover', {}, 10_000);
  // The answer to a later question shows that the agent has received the order.
  await askAgent(path, 'status');
  await rm(path);
  await answers('first');
  order.resolve('moved');
  t.is(await outcome, 'moved');
});

test('The agent does not take its socket from another agent before that agent stops', async (t) => {
  const { path, clock, repaired, answers } = await opened(t);
  await rm(path);
  const other = await serveAgentSocket(path, { status: () => 'second' });
  await clock.advance(10_000);
  await answers('second');
  t.is(repaired.count, 0);
  other.closeAllConnections();
  other.close();
  await answers('first');
  t.is(repaired.count, 1);
});

test('AgentSocketFile stays closed if it is closed while it is restored', async (t) => {
  const { path, socket } = await opened(t);
  await rm(path);
  const restoring = socket.restore();
  socket.close();
  await restoring;
  await t.throwsAsync(askAgent(path, 'status'), { code: 'AGENT_UNREACHABLE' });
});
