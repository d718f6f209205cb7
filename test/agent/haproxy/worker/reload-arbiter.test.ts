import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import {
  type ArbiterOptions,
  ReloadArbiter,
  type ReloadCause,
  type ReloadResult,
} from '../../../../agent/haproxy/worker/reload-arbiter.ts';
import { eventually } from '../../../support/basics/eventually.ts';

interface Reload {
  readonly causes: readonly ReloadCause[];
  readonly began: number;
  end: number;
}

/** An arbiter with an interval of 50 ms whose reloads take 20 ms and are noted down. */
function started(t: ExecutionContext, given: Partial<ArbiterOptions> = {}) {
  const reloads: Reload[] = [];
  let running = 0;
  let most = 0;
  const arbiter = new ReloadArbiter({
    interval: () => 50,
    pressure: async () => 0,
    ...given,
    reload: async (causes) => {
      most = Math.max(most, ++running);
      const reload: Reload = { causes: [...causes], began: performance.now(), end: 0 };
      reloads.push(reload);
      const result = (await given.reload?.(causes)) ?? 'done';
      await delay(20);
      running--;
      reload.end = performance.now();
      return result;
    },
  });
  t.teardown(() => arbiter.close());
  const ended = (count: number) =>
    eventually(
      async () => reloads.filter(({ end }) => end > 0).length,
      (have) => have >= count,
    );
  return { arbiter, reloads, ended, mostAtOnce: () => most };
}

/** Timers may come a millisecond early. */
function isSpaced(t: ExecutionContext, reloads: readonly Reload[], least: number): void {
  for (const [at, { began }] of reloads.entries()) {
    const before = reloads[at - 1];
    if (before !== undefined) t.true(began - before.end >= least - 2, `${began - before.end} ms`);
  }
}

test('The first request reloads at once, whatever the interval', async (t) => {
  const { arbiter, reloads, ended } = started(t, { interval: () => 3_600_000 });
  arbiter.request('listener-added');
  await ended(1);
  t.deepEqual(
    reloads.map(({ causes }) => causes),
    [['listener-added']],
  );
});

test('Simultaneous requests are one reload with each cause once', async (t) => {
  const { arbiter, reloads, ended } = started(t);
  for (const cause of ['listener-added', 'listener-changed', 'listener-added'] as const)
    arbiter.request(cause);
  t.deepEqual([...arbiter.pending], ['listener-added', 'listener-changed']);
  await ended(1);
  t.deepEqual(
    reloads.map(({ causes }) => causes),
    [['listener-added', 'listener-changed']],
  );
  t.is(arbiter.pending.size, 0);
});

test('Requests during a reload are one further reload after the interval', async (t) => {
  const done = Promise.withResolvers<ReloadResult>();
  const { arbiter, reloads, ended, mostAtOnce } = started(t, { reload: () => done.promise });
  arbiter.request('listener-added');
  await eventually(async () => arbiter.isReloading && reloads.length === 1, Boolean);
  arbiter.request('listener-changed');
  arbiter.request('listener-removed');
  t.deepEqual([...arbiter.pending], ['listener-changed', 'listener-removed']);
  done.resolve('done');
  await ended(2);
  t.deepEqual(reloads[1]?.causes, ['listener-changed', 'listener-removed']);
  isSpaced(t, reloads, 50);
  t.is(mostAtOnce(), 1);
});

test('Continuous requests reload one interval after the end of the last reload', async (t) => {
  const { arbiter, reloads, ended, mostAtOnce } = started(t);
  const storm = setInterval(() => arbiter.request('listener-changed'), 2);
  await ended(4);
  clearInterval(storm);
  isSpaced(t, reloads, 50);
  t.is(mostAtOnce(), 1);
});

test('From the third of continuous reloads on, the interval grows with the duration of a reload', async (t) => {
  const { arbiter, reloads, ended } = started(t);
  const storm = setInterval(() => arbiter.request('listener-changed'), 2);
  await ended(4);
  clearInterval(storm);
  const [first, , third, fourth] = reloads;
  // Twenty times 20 ms, but no more than five intervals.
  t.true((third?.began ?? 0) - (first?.end ?? 0) >= 248);
  t.true((fourth?.began ?? 0) - (first?.end ?? 0) >= 498);
});

test('A new interval applies from the next request', async (t) => {
  let interval = 3_600_000;
  const { arbiter, ended } = started(t, { interval: () => interval });
  arbiter.request('listener-added');
  await ended(1);
  interval = 1;
  arbiter.request('listener-changed');
  t.is(await ended(2), 2);
});

test('A failed reload is retried with backoff and the same causes', async (t) => {
  let failures = 2;
  const { arbiter, reloads, ended } = started(t, {
    reload: async () => (failures-- <= 0 ? 'done' : 'failed'),
  });
  arbiter.request('listener-added');
  await ended(3);
  t.deepEqual(
    reloads.map(({ causes }) => causes),
    [['listener-added'], ['listener-added'], ['listener-added']],
  );
  isSpaced(t, reloads.slice(0, 2), 200);
  isSpaced(t, reloads.slice(1), 400);
  t.is(arbiter.pending.size, 0);
});

test('An unneeded reload does not delay the next one', async (t) => {
  const results = ['unneeded', 'done'] as const;
  let count = 0;
  const { arbiter, reloads, ended } = started(t, {
    interval: () => 3_600_000,
    reload: async () => results[count++] ?? 'done',
  });
  arbiter.request('listener-added');
  await ended(1);
  arbiter.request('listener-changed');
  await ended(2);
  // Not at once: those that always come to nothing must not come without end.
  isSpaced(t, reloads, 80);
  t.is(arbiter.pending.size, 0);
});

test('A request during the backoff joins the retry', async (t) => {
  let failures = 1;
  const { arbiter, reloads, ended } = started(t, {
    reload: async () => {
      const isDone = failures-- <= 0;
      // After the reload, which takes 20 ms, and before the next one, however late timers come.
      if (!isDone) setTimeout(() => arbiter.request('repair'), 60);
      return isDone ? 'done' : 'failed';
    },
  });
  arbiter.request('listener-added');
  await ended(2);
  t.deepEqual([...(reloads[1]?.causes ?? [])].sort(), ['listener-added', 'repair']);
});

test('A successful reload resets the backoff', async (t) => {
  const results: ReloadResult[] = ['failed', 'failed', 'done', 'done'];
  const order: string[] = [];
  const { arbiter, ended } = started(t, {
    reload: async () => {
      order.push('reload');
      const result = results.shift() ?? 'done';
      // The fourth comes 20 and 50 ms after the beginning of the third, or this does first, however late timers come.
      if (results.length === 1) {
        arbiter.request('listener-changed');
        setTimeout(() => order.push('400 ms'), 400);
      }
      return result;
    },
  });
  arbiter.request('listener-added');
  await ended(4);
  t.deepEqual(order, ['reload', 'reload', 'reload', 'reload']);
});

test('Too many draining workers delay reloads until they have ended', async (t) => {
  let pressure = 3;
  const { arbiter, reloads, ended } = started(t, { pressure: async () => pressure });
  arbiter.request('listener-added');
  await ended(1);
  arbiter.request('listener-changed');
  await delay(150);
  t.is(reloads.length, 1);
  t.deepEqual([...arbiter.pending], ['listener-changed']);
  pressure = 0;
  t.is(await ended(2), 2);
});

test('Too many draining workers do not delay a reload forever', async (t) => {
  const { arbiter, reloads, ended } = started(t, { pressure: async () => 1 });
  arbiter.request('listener-added');
  await ended(1);
  arbiter.request('listener-changed');
  await ended(2);
  isSpaced(t, reloads, 200);
});

test('A shorter interval applies to a waiting reload', async (t) => {
  let interval = 3_600_000;
  const { arbiter, ended } = started(t, { interval: () => interval });
  arbiter.request('listener-added');
  await ended(1);
  arbiter.request('listener-changed');
  interval = 50;
  arbiter.retime();
  t.is(await ended(2), 2);
});

test('The first reload does not wait for draining workers', async (t) => {
  const { arbiter, ended } = started(t, { pressure: async () => 10 });
  arbiter.request('listener-added');
  t.is(await ended(1), 1);
});

test('A closed ReloadArbiter drops waiting and new requests', async (t) => {
  const { arbiter, reloads, ended } = started(t);
  arbiter.request('listener-added');
  await ended(1);
  arbiter.request('listener-changed');
  arbiter.close();
  arbiter.request('repair');
  await delay(150);
  t.is(reloads.length, 1);
});

test('A ReloadArbiter that is closed while it counts draining workers does not reload', async (t) => {
  const looked = Promise.withResolvers<number>();
  let looks = 0;
  const { arbiter, reloads } = started(t, {
    pressure: () => {
      looks++;
      return looked.promise;
    },
  });
  arbiter.request('listener-added');
  await eventually(
    async () => looks,
    (count) => count === 1,
  );
  arbiter.close();
  looked.resolve(0);
  await delay(50);
  t.is(reloads.length, 0);
});
