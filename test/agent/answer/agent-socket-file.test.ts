import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { askAgent, orderAgent, serveAgentSocket } from '../../../agent/answer/agent-socket.ts';
import { AgentSocketFile } from '../../../agent/answer/agent-socket-file.ts';
import { OwnFiles } from '../../../agent/host/own-files.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { silentLog } from '../../support/values/silent-log.ts';

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
  await socket.open();
  ownFiles.start();
  t.teardown(async () => {
    ownFiles.close();
    socket.close();
    await rm(directory, { recursive: true });
  });
  /** Moves the clock on until somebody answers as `who`: sockets take their own time. */
  const answers = async (who: string): Promise<void> => {
    for (;;) {
      await clock.advance(1_000);
      if ((await askAgent(path, 'status').catch(() => '')) === who) return;
    }
  };
  return { folder, path, clock, order, repaired, socket, answers };
}

const removals: readonly (readonly [string, (path: string, folder: string) => Promise<void>])[] = [
  ['it was removed', (path) => rm(path)],
  ['its folder was removed', (_, folder) => rm(folder, { recursive: true })],
  [
    'something else was put in its place',
    async (path) => {
      await rm(path);
      await writeFile(path, '');
    },
  ],
];
for (const [what, remove] of removals)
  test(`The agent's socket is made again if ${what}`, async (t) => {
    const { folder, path, clock, repaired, answers } = await opened(t);
    await clock.advance(10_000);
    t.is(repaired.count, 0);
    await remove(path, folder);
    await answers('first');
    await clock.advance(10_000);
    t.is(repaired.count, 1);
  });

test('Who waits for an order when the socket is removed still hears what becomes of it', async (t) => {
  const { path, order, answers } = await opened(t);
  const outcome = orderAgent(path, 'failover', {}, 10_000);
  // It has got there once a later question is answered.
  await askAgent(path, 'status');
  await rm(path);
  await answers('first');
  order.resolve('moved');
  t.is(await outcome, 'moved');
});

test('The agent leaves its socket to another agent that has taken it, until that is gone', async (t) => {
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

test('A socket that is closed while it is restored stays closed', async (t) => {
  const { path, socket } = await opened(t);
  await rm(path);
  const restoring = socket.restore();
  socket.close();
  await restoring;
  await t.throwsAsync(askAgent(path, 'status'), { code: 'AGENT_UNREACHABLE' });
});
