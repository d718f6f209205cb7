import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import { BackendNames } from '../../../../agent/haproxy/socket/backend-names.ts';
import type { Runtime } from '../../../../agent/haproxy/socket/runtime.ts';
import { positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { type Sample, Statistics } from '../../../../agent/haproxy/stats/statistics.ts';
import { Deadline } from '../../../support/basics/deadline.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { proxyRows } from '../../../support/stat-answers.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const SESSIONS = positionOf('stot');

/** A worker with one listener. */
class Worker {
  readonly pid: number;
  readonly runtime: Runtime;
  sessions = 0;
  isStopping = false;
  connections = 1;
  asked = 0;
  closed = 0;
  /** Called before it answers to `show stat`. */
  onStat: () => void = () => undefined;

  constructor(pid: number) {
    this.pid = pid;
    const connection = {
      worker: { pid },
      names: new BackendNames(),
      ask: async (line: string) => (await this.#answers([line]))[0],
      askAll: (lines: readonly string[]) => this.#answers(lines),
      close: () => {
        this.closed++;
      },
    };
    this.runtime = connection as unknown as Runtime;
  }

  async #answers(lines: readonly string[]): Promise<readonly string[]> {
    this.asked++;
    if (lines[0] !== 'show info') this.onStat();
    if (this.closed > 0) throw new HeadgateError('RUNTIME_CLOSED', 'The connection is closed');
    return lines.map((line) => {
      if (line !== 'show info') return proxyRows(line, ['default:web:tcp:80:v4'], { stot: this.sessions });
      const stopping = this.isStopping ? 1 : 0;
      return `Version: 2.6.12\nPid: ${this.pid}\nStart_time_sec: 7\nStopping: ${stopping}\nCurrConns: ${this.connections}`;
    });
  }
}

async function start(t: ExecutionContext<unknown>, worker: Worker | undefined) {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  const clock = new FakeClock();
  const state = { active: worker?.runtime };
  const make = (): Statistics =>
    new Statistics({
      file: join(directory, 'counters'),
      desired: new Map(),
      active: () => state.active,
      detail: () => 'member',
      oldWorkers: () => Promise.reject(new Error('The master does not answer')),
      log: silentLog(),
      clock,
    });
  const statistics = make();
  t.teardown(async () => {
    await statistics.close();
    await rm(directory, { recursive: true });
  });
  return { clock, state, statistics, make };
}

/** A round that the test does not await, because it may wait for the clock and the file. */
function reading(statistics: Statistics, isAwaited: boolean) {
  const state: { sample?: Sample | undefined; isOver: boolean } = { isOver: false };
  void statistics.read({ isAwaited }).then((sample) => {
    state.sample = sample;
    state.isOver = true;
  });
  return state;
}

/** Waits for the file system; the clock stands still. */
async function until(condition: () => boolean): Promise<void> {
  for (const deadline = new Deadline(30_000, 30); !condition(); await settled())
    if (deadline.isOver) throw new Error('The condition did not become true');
}

function sessions(sample: Sample | undefined): number | undefined {
  return sample?.series.pool[0]?.values[SESSIONS];
}

test('A round reads without rests if a scrape waits for it, and rests after each portion otherwise', async (t) => {
  const worker = new Worker(1);
  const { clock, statistics } = await start(t, worker);
  worker.sessions = 3;
  t.is(sessions(await statistics.read({ isAwaited: true })), 3);
  // HAProxy takes a millisecond for this portion.
  worker.onStat = () => clock.hang(1);
  const state = reading(statistics, false);
  await clock.advance(5);
  t.false(state.isOver);
  await clock.advance(10);
  const { sample } = state;
  t.is(sessions(sample), 3);
  t.is(sample?.seconds, 0.012);
  await clock.advance(1_000);
  t.is(sample?.age(), 1.015);
});

test('A round under way stops resting when a scrape waits for it', async (t) => {
  const worker = new Worker(1);
  const { clock, statistics } = await start(t, worker);
  worker.onStat = () => clock.hang(1_000);
  void statistics.read({ isAwaited: false });
  await settled();
  const state = reading(statistics, true);
  await clock.advance(9_000);
  t.false(state.isOver, 'The rest under way');
  await clock.advance(1_000);
  await until(() => state.isOver);
  t.is(sessions(state.sample), 0);
});

test('A round reads the new worker if the worker is replaced, and no counter goes back', async (t) => {
  const [first, second] = [new Worker(1), new Worker(2)];
  const { clock, state, statistics } = await start(t, first);
  first.sessions = 5;
  await statistics.read({ isAwaited: true });
  second.sessions = 2;
  first.onStat = () => {
    first.closed = 1;
    state.active = undefined;
  };
  const round = reading(statistics, true);
  await clock.advance(200);
  t.false(round.isOver, 'There is no new worker yet');
  state.active = second.runtime;
  await clock.advance(200);
  await until(() => round.isOver);
  t.is(round.sample?.info.pid, 2);
  t.is(sessions(round.sample), 7);
});

test('A round returns undefined if no worker can be read', async (t) => {
  const worker = new Worker(1);
  const { clock, state, statistics } = await start(t, worker);
  const result = async () => {
    const round = reading(statistics, true);
    await clock.advance(1_000);
    return [round.isOver, round.sample];
  };
  worker.closed = 1;
  t.deepEqual(await result(), [true, undefined]);
  state.active = undefined;
  t.deepEqual(await result(), [true, undefined]);
});

test('Statistics closes the connection to a replaced worker a second later if there was no round', async (t) => {
  const old = new Worker(41);
  const { clock, statistics } = await start(t, undefined);
  statistics.retire(old.runtime);
  await clock.advance(900);
  t.is(old.closed, 0);
  await clock.advance(200);
  t.is(old.closed, 1);
  t.is(old.asked, 0);
});

test('Statistics reads a replaced worker with each round, and a last time after its last connection', async (t) => {
  const [old, next] = [new Worker(1), new Worker(2)];
  const { clock, state, statistics } = await start(t, old);
  old.sessions = 5;
  await statistics.read({ isAwaited: true });
  state.active = next.runtime;
  old.isStopping = true;
  statistics.retire(old.runtime);
  old.sessions = 6;
  next.sessions = 1;
  const sample = await statistics.read({ isAwaited: true });
  t.is(sample?.oldWorkers, 1);
  t.is(sessions(await statistics.read({ isAwaited: true })), 7);
  await clock.advance(3_000);
  t.is(old.closed, 0, 'It has a connection');
  old.sessions = 8;
  old.connections = 0;
  await clock.advance(3_000);
  await until(() => old.closed === 1);
  const last = await statistics.read({ isAwaited: true });
  t.is(sessions(last), 9);
  t.is(last?.oldWorkers, 0);
});

test('Statistics writes the counts of an old worker to the file before it shows them', async (t) => {
  const [old, next] = [new Worker(1), new Worker(2)];
  const { state, statistics, make } = await start(t, old);
  await statistics.read({ isAwaited: true });
  state.active = next.runtime;
  old.isStopping = true;
  statistics.retire(old.runtime);
  await statistics.read({ isAwaited: true });
  old.sessions = 5;
  const shown = sessions(await statistics.read({ isAwaited: true }));
  t.is(shown, 5);
  const afterKill = make();
  await afterKill.start();
  t.is(sessions(await afterKill.read({ isAwaited: true })), 5);
});

test('close() closes the connection to a worker that was replaced a moment ago', async (t) => {
  const { statistics } = await start(t, undefined);
  const [old, late] = [new Worker(42), new Worker(43)];
  statistics.retire(old.runtime);
  await statistics.close();
  t.is(old.closed, 1);
  statistics.retire(late.runtime);
  t.is(late.closed, 1, 'It is not followed any more');
});

test('The next agent continues the totals after close() and after a kill', async (t) => {
  const worker = new Worker(1);
  const { statistics, make } = await start(t, worker);
  worker.sessions = 4;
  await statistics.read({ isAwaited: true });
  worker.sessions = 6;
  await statistics.close();
  const second = make();
  await second.start();
  worker.sessions = 7;
  t.is(sessions(await second.read({ isAwaited: true })), 7);
  // The second agent was killed after its first round: the file is that of the first agent.
  const third = make();
  await third.start();
  worker.sessions = 10;
  t.is(sessions(await third.read({ isAwaited: true })), 10);
});
