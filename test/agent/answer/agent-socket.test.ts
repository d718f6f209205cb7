import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  type Answers,
  agentSocketPath,
  askAgent,
  type Orders,
  orderAgent,
  serveAgentSocket,
} from '../../../agent/answer/agent-socket.ts';

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

test('serveAgentSocket() answers questions and carries out orders, each with its own words', async (t) => {
  const path = await served(
    t,
    { why: (query) => ({ service: query.get('service') }) },
    { failover: async (query) => ({ force: query.get('force') }) },
  );
  t.deepEqual(await askAgent(path, 'why', { service: 'default/a b&c' }), { service: 'default/a b&c' });
  t.deepEqual(await orderAgent(path, 'failover', { force: 'true' }, 5_000), { force: 'true' });
  t.is((await stat(path)).mode & 0o777, 0o600);
});

test('askAgent() and orderAgent() fail with the words of an agent that cannot do it', async (t) => {
  const cannot = (): never => {
    throw new Error('It cannot be read');
  };
  const path = await served(t, { status: cannot }, { failover: async () => cannot() });
  const words = 'It cannot be read';
  await t.throwsAsync(askAgent(path, 'status'), { code: 'QUESTION_FAILED', message: words });
  await t.throwsAsync(orderAgent(path, 'failover', {}, 5_000), { code: 'ORDER_FAILED', message: words });
});

test('A question or an order that the agent does not know fails, and so does one asked as the other', async (t) => {
  const path = await served(t, { status: () => ({}) }, { failover: async () => ({}) });
  for (const name of ['later', 'failover', 'toString'])
    await t.throwsAsync(askAgent(path, name), {
      code: 'QUESTION_FAILED',
      message: `This agent does not know "${name}"`,
    });
  await t.throwsAsync(orderAgent(path, 'status', {}, 5_000), { code: 'ORDER_FAILED' });
});

test('A path that is none is answered with 400, and what is no JSON with 500: the agent goes on', async (t) => {
  const path = await served(t, { count: () => 1n });
  for (const method of ['GET', 'POST']) t.is(await statusOf(path, method, '//'), 400);
  await t.throwsAsync(askAgent(path, 'count'), { code: 'QUESTION_FAILED', message: /BigInt/ });
  t.like(await askAgent(path, 'ping'), { pid: process.pid });
});

/** With a path as it is, which askAgent() would not send. */
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

test('orderAgent() waits for as long as it is told', async (t) => {
  const path = agentSocketPath(await runtimeDir(t));
  const server = await serveAgentSocket(path, {}, { failover: () => new Promise(() => undefined) });
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { cause } = await t.throwsAsync(orderAgent(path, 'failover', {}, 50), { code: 'AGENT_UNREACHABLE' });
  t.is((cause as Error).message, 'no answer within 0.05 s');
});

test('askAgent() says where no agent answers', async (t) => {
  const path = agentSocketPath(await runtimeDir(t));
  await t.throwsAsync(askAgent(path, 'status'), {
    code: 'AGENT_UNREACHABLE',
    message: `No agent answers at "${path}"`,
  });
});

test('serveAgentSocket() takes the place of an agent that is gone, and of none that answers', async (t) => {
  const path = agentSocketPath(await runtimeDir(t));
  await writeFile(path, '');
  const server = await serveAgentSocket(path, { status: () => 'first' });
  t.teardown(() => server.close());
  await t.throwsAsync(serveAgentSocket(path, { status: () => 'second' }), { code: 'AGENT_RUNNING' });
  t.is(await askAgent(path, 'status'), 'first');
});
