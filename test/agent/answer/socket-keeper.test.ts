import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { askAgent, orderAgent, serveAgentSocket } from '../../../agent/answer/agent-socket.ts';
import { SocketKeeper } from '../../../agent/answer/socket-keeper.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { silentLog } from '../../support/values/silent-log.ts';

async function kept(t: ExecutionContext<unknown>) {
  const directory = await mkdtemp(join(tmpdir(), 'socket-keeper-'));
  const folder = join(directory, 'run');
  const path = join(folder, 'agent.sock');
  const clock = new FakeClock();
  const order = Promise.withResolvers<string>();
  const repaired = { count: 0 };
  const keeper = new SocketKeeper({
    path,
    answers: { status: () => 'first' },
    orders: { failover: () => order.promise },
    onRepair: () => repaired.count++,
    log: silentLog(),
    clock,
  });
  await keeper.open();
  t.teardown(async () => {
    keeper.close();
    await rm(directory, { recursive: true });
  });
  /** Moves the clock on until somebody answers as `who`: sockets take their own time. */
  const answers = async (who: string): Promise<void> => {
    for (;;) {
      await clock.advance(1_000);
      if ((await askAgent(path, 'status').catch(() => '')) === who) return;
    }
  };
  return { folder, path, clock, order, repaired, keeper, answers };
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
  test(`SocketKeeper makes the agent's socket again where ${what}`, async (t) => {
    const { folder, path, clock, repaired, answers } = await kept(t);
    await clock.advance(5_000);
    t.is(repaired.count, 0);
    await remove(path, folder);
    await answers('first');
    await clock.advance(5_000);
    t.is(repaired.count, 1);
  });

test('Who waits for an order when the socket is removed still hears what becomes of it', async (t) => {
  const { path, order, answers } = await kept(t);
  const outcome = orderAgent(path, 'failover', {}, 10_000);
  // It has got there once a later question is answered.
  await askAgent(path, 'status');
  await rm(path);
  await answers('first');
  order.resolve('moved');
  t.is(await outcome, 'moved');
});

test('SocketKeeper leaves the place to another agent that has taken it, until that is gone', async (t) => {
  const { path, clock, repaired, answers } = await kept(t);
  await rm(path);
  const other = await serveAgentSocket(path, { status: () => 'second' });
  await clock.advance(5_000);
  await answers('second');
  t.is(repaired.count, 0);
  other.closeAllConnections();
  other.close();
  await answers('first');
  t.is(repaired.count, 1);
});

test('SocketKeeper that is closed makes no socket', async (t) => {
  const { path, clock, keeper } = await kept(t);
  keeper.close();
  await clock.advance(5_000);
  await t.throwsAsync(askAgent(path, 'status'), { code: 'AGENT_UNREACHABLE' });
});
