import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { Runtime } from '../../../../agent/haproxy/socket/runtime.ts';
import { Statistics } from '../../../../agent/haproxy/stats/statistics.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

test('A worker that was replaced is let go a second later where nobody asks for what it counts', async (t) => {
  const statistics = make();
  const { runtime, asked, closed } = replaced(41);
  statistics.retire(runtime);
  await delay(800);
  t.deepEqual([closed(), asked()], [0, 0]);
  await delay(500);
  t.true(closed() > 0);
  t.is(asked(), 0);
  await statistics.close();
});

test('close() lets go of a worker that was replaced a moment ago', async (t) => {
  const statistics = make();
  const { runtime, closed } = replaced(42);
  statistics.retire(runtime);
  await statistics.close();
  t.is(closed(), 1);
  const late = replaced(43);
  statistics.retire(late.runtime);
  t.is(late.closed(), 1, 'there is nobody any more to follow it');
});

/** Nobody asks it for anything, so that it reads and writes nothing. */
function make(): Statistics {
  return new Statistics({
    adminSocket: '/nowhere/admin.sock',
    file: '/nowhere/counters',
    wanted: new Map(),
    workerPid: () => undefined,
    changesOf: () => 0,
    detail: () => 'member',
    log: silentLog(),
  });
}

/** The connection to a worker, and how often it was used. */
function replaced(pid: number): {
  readonly runtime: Runtime;
  readonly asked: () => number;
  readonly closed: () => number;
} {
  let [asked, closed] = [0, 0];
  const runtime = {
    worker: { pid },
    ask: () => {
      asked++;
      return Promise.reject(new Error('Nobody shall ask'));
    },
    close: () => {
      closed++;
    },
  };
  return { runtime: runtime as unknown as Runtime, asked: () => asked, closed: () => closed };
}
