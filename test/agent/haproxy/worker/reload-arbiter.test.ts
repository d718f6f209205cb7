import test, { type ExecutionContext } from 'ava';
import {
  type ArbiterOptions,
  ReloadArbiter,
  type ReloadCause,
  type ReloadResult,
} from '../../../../agent/haproxy/worker/reload-arbiter.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

interface Reload {
  readonly causes: readonly ReloadCause[];
  readonly began: number;
  end: number;
}

/** The duration of a reload. */
const RELOAD_MS = 20;

/** An arbiter with an interval of 50 ms, and a record of its reloads. */
function started(t: ExecutionContext, given: Partial<ArbiterOptions> = {}) {
  const clock = new FakeClock();
  const reloads: Reload[] = [];
  let running = 0;
  let most = 0;
  const arbiter = new ReloadArbiter({
    interval: () => 50,
    pressure: async () => 0,
    clock,
    ...given,
    reload: async (causes) => {
      most = Math.max(most, ++running);
      const reload: Reload = { causes: [...causes], began: clock.monotonic(), end: 0 };
      reloads.push(reload);
      const result = (await given.reload?.(causes)) ?? 'done';
      await new Promise<void>((resolve) => clock.after(RELOAD_MS, resolve));
      running--;
      reload.end = clock.monotonic();
      return result;
    },
  });
  t.teardown(() => arbiter.close());
  /** Milliseconds from the end of each reload to the begin of the next. */
  const rests = () => reloads.slice(1).map(({ began }, at) => began - (reloads[at]?.end ?? 0));
  /** Requests a reload every 2 ms. */
  const storm = async (milliseconds: number): Promise<void> => {
    for (let at = 0; at < milliseconds; at += 2) {
      arbiter.request('listener-changed');
      await clock.advance(2);
    }
  };
  return { arbiter, clock, reloads, rests, storm, mostAtOnce: () => most };
}

test('The first request reloads at once, whatever the interval', async (t) => {
  const { arbiter, clock, reloads } = started(t, { interval: () => 3_600_000 });
  arbiter.request('listener-added');
  await clock.advance(0);
  t.deepEqual(
    reloads.map(({ causes }) => causes),
    [['listener-added']],
  );
});

test('Simultaneous requests are one reload with each cause once', async (t) => {
  const { arbiter, clock, reloads } = started(t);
  for (const cause of ['listener-added', 'listener-changed', 'listener-added'] as const)
    arbiter.request(cause);
  t.deepEqual([...arbiter.pending], ['listener-added', 'listener-changed']);
  await clock.advance(1_000);
  t.deepEqual(
    reloads.map(({ causes }) => causes),
    [['listener-added', 'listener-changed']],
  );
  t.is(arbiter.pending.size, 0);
});

test('Requests during a reload are one further reload after the interval', async (t) => {
  const done = Promise.withResolvers<ReloadResult>();
  const { arbiter, clock, reloads, rests, mostAtOnce } = started(t, { reload: () => done.promise });
  arbiter.request('listener-added');
  await clock.advance(500);
  t.true(arbiter.isReloading);
  arbiter.request('listener-changed');
  arbiter.request('listener-removed');
  t.deepEqual([...arbiter.pending], ['listener-changed', 'listener-removed']);
  done.resolve('done');
  await clock.advance(1_000);
  t.deepEqual(reloads[1]?.causes, ['listener-changed', 'listener-removed']);
  t.is(reloads.length, 2);
  t.true((rests()[0] ?? 0) >= 50);
  t.is(mostAtOnce(), 1);
});

test('Continuous requests reload one interval after the end of the last reload', async (t) => {
  const { reloads, rests, storm, mostAtOnce } = started(t);
  await storm(1_000);
  t.true(reloads.length >= 4);
  t.true(rests().every((rest) => rest >= 50));
  t.is(mostAtOnce(), 1);
});

test('From the third of continuous reloads on, the interval grows with the duration of a reload', async (t) => {
  const { reloads, storm } = started(t);
  await storm(1_000);
  const [first, , third, fourth] = reloads;
  // Twenty times the duration of a reload, but no more than five intervals.
  t.is((third?.began ?? 0) - (first?.end ?? 0), 5 * 50 + RELOAD_MS);
  t.is((fourth?.began ?? 0) - (first?.end ?? 0), 2 * (5 * 50 + RELOAD_MS));
});

test('A new interval applies from the next request', async (t) => {
  let interval = 3_600_000;
  const { arbiter, clock, reloads } = started(t, { interval: () => interval });
  arbiter.request('listener-added');
  await clock.advance(RELOAD_MS);
  interval = 1;
  arbiter.request('listener-changed');
  // The interval of continuing reloads is five times as long.
  await clock.advance(5);
  t.is(reloads.length, 2);
});

test('A failed reload is retried with backoff and the same causes', async (t) => {
  let failures = 2;
  const { arbiter, clock, reloads, rests } = started(t, {
    reload: async () => (failures-- <= 0 ? 'done' : 'failed'),
  });
  arbiter.request('listener-added');
  await clock.advance(10_000);
  t.deepEqual(
    reloads.map(({ causes }) => causes),
    [['listener-added'], ['listener-added'], ['listener-added']],
  );
  t.deepEqual(rests(), [200, 400]);
  t.is(arbiter.pending.size, 0);
});

test('An unneeded reload does not delay the next one', async (t) => {
  const results = ['unneeded', 'done'] as const;
  let count = 0;
  const { arbiter, clock, reloads, rests } = started(t, {
    interval: () => 3_600_000,
    reload: async () => results[count++] ?? 'done',
  });
  arbiter.request('listener-added');
  await clock.advance(RELOAD_MS);
  arbiter.request('listener-changed');
  await clock.advance(1_000);
  t.is(reloads.length, 2);
  // Not at once: those that always come to nothing must not come without end.
  t.deepEqual(rests(), [100]);
  t.is(arbiter.pending.size, 0);
});

test('A request during the backoff joins the retry', async (t) => {
  let failures = 1;
  const { arbiter, clock, reloads } = started(t, {
    reload: async () => (failures-- <= 0 ? 'done' : 'failed'),
  });
  arbiter.request('listener-added');
  await clock.advance(RELOAD_MS + 40);
  t.is(reloads.length, 1);
  arbiter.request('repair');
  await clock.advance(1_000);
  t.deepEqual([...(reloads[1]?.causes ?? [])].sort(), ['listener-added', 'repair']);
  t.is(reloads.length, 2);
});

test('A successful reload resets the backoff', async (t) => {
  const results: ReloadResult[] = ['failed', 'failed', 'done', 'done'];
  const { arbiter, clock, reloads, rests } = started(t, {
    reload: async () => {
      const result = results.shift() ?? 'done';
      if (results.length === 1) arbiter.request('listener-changed');
      return result;
    },
  });
  arbiter.request('listener-added');
  await clock.advance(10_000);
  t.is(reloads.length, 4);
  t.deepEqual(rests(), [200, 400, 50]);
});

test('Too many draining workers delay reloads until they have ended', async (t) => {
  let pressure = 3;
  const { arbiter, clock, reloads } = started(t, { pressure: async () => pressure });
  arbiter.request('listener-added');
  await clock.advance(RELOAD_MS);
  arbiter.request('listener-changed');
  await clock.advance(150);
  t.is(reloads.length, 1);
  t.deepEqual([...arbiter.pending], ['listener-changed']);
  pressure = 0;
  await clock.advance(50);
  t.is(reloads.length, 2);
});

test('Too many draining workers do not delay a reload forever', async (t) => {
  const { arbiter, clock, rests } = started(t, { pressure: async () => 1 });
  arbiter.request('listener-added');
  await clock.advance(RELOAD_MS);
  arbiter.request('listener-changed');
  await clock.advance(1_000);
  t.deepEqual(rests(), [200]);
});

test('A shorter interval applies to a waiting reload', async (t) => {
  let interval = 3_600_000;
  const { arbiter, clock, rests } = started(t, { interval: () => interval });
  arbiter.request('listener-added');
  await clock.advance(RELOAD_MS);
  arbiter.request('listener-changed');
  interval = 50;
  arbiter.retime();
  await clock.advance(1_000);
  // The interval of continuing reloads is five times as long.
  t.deepEqual(rests(), [5 * 50]);
});

test('The first reload does not wait for draining workers', async (t) => {
  const { arbiter, clock, reloads } = started(t, { pressure: async () => 10 });
  arbiter.request('listener-added');
  await clock.advance(0);
  t.is(reloads.length, 1);
});

test('A closed ReloadArbiter drops waiting and new requests', async (t) => {
  const { arbiter, clock, reloads } = started(t);
  arbiter.request('listener-added');
  await clock.advance(RELOAD_MS);
  arbiter.request('listener-changed');
  arbiter.close();
  arbiter.request('repair');
  await clock.advance(10_000);
  t.is(reloads.length, 1);
});

test('A ReloadArbiter that is closed while it counts draining workers does not reload', async (t) => {
  const looked = Promise.withResolvers<number>();
  let looks = 0;
  const { arbiter, clock, reloads } = started(t, {
    pressure: () => {
      looks++;
      return looked.promise;
    },
  });
  arbiter.request('listener-added');
  await clock.advance(0);
  t.is(looks, 1);
  arbiter.close();
  looked.resolve(0);
  await clock.advance(10_000);
  t.is(reloads.length, 0);
});

test('A namespace that changes all the time waits for its share, and another one does not wait for it', async (t) => {
  const { arbiter, clock, reloads } = started(t, { share: { atOnce: 3, interval: 10_000 } });
  const storm = async (milliseconds: number): Promise<void> => {
    for (let at = 0; at < milliseconds; at += 100) {
      arbiter.request('listener-changed', 'hostile');
      await clock.advance(100);
    }
  };
  await storm(29_000);
  // Three at once, then one after each ten seconds.
  t.is(reloads.length, 3 + 2);
  const before = reloads.length;
  arbiter.request('listener-added', 'other');
  await clock.advance(300);
  t.deepEqual(reloads.at(-1)?.causes, ['listener-changed', 'listener-added']);
  t.is(reloads.length, before + 1, 'what waits goes along');
});

test('A namespace that has all load balancers has no share', async (t) => {
  let isAlone = true;
  const { arbiter, clock, reloads } = started(t, {
    share: { atOnce: 1, interval: 10_000 },
    isAlone: () => isAlone,
  });
  for (let turn = 1; turn <= 4; turn++) {
    arbiter.request('listener-changed', 'only');
    await clock.advance(2_000);
    t.is(reloads.length, turn);
  }
  isAlone = false;
  arbiter.request('listener-changed', 'only');
  await clock.advance(2_000);
  t.is(reloads.length, 4, 'now it waits');
});

test('A namespace has its whole share again after a rest', async (t) => {
  const { arbiter, clock, reloads } = started(t, { share: { atOnce: 2, interval: 1_000 } });
  for (let turn = 1; turn <= 2; turn++) {
    for (let at = 0; at < 2; at++) {
      arbiter.request('listener-changed', 'one');
      await clock.advance(400);
    }
    t.is(reloads.length, 2 * turn);
    await clock.advance(5_000);
  }
});

test('Removals that follow one another are one reload after a rest', async (t) => {
  const { arbiter, clock, reloads } = started(t);
  for (let at = 0; at < 36; at++) {
    arbiter.request('listener-removed', 'one');
    await clock.advance(80);
  }
  t.is(reloads.length, 0);
  await clock.advance(1_000);
  t.is(reloads.length, 1);
  // They do not wait without end.
  for (let at = 0; at < 100; at++) {
    arbiter.request('listener-removed', 'one');
    await clock.advance(80);
  }
  t.true(reloads.length >= 2);
});

test('A removal goes along with what must not wait', async (t) => {
  const { arbiter, clock, reloads } = started(t);
  arbiter.request('listener-removed', 'one');
  arbiter.request('listener-added', 'one');
  await clock.advance(0);
  t.deepEqual(reloads[0]?.causes, ['listener-removed', 'listener-added']);
});
