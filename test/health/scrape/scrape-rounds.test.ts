import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import test from 'ava';
import type { MetricFamily } from '../../../agent/base/metric-family.ts';
import { keep } from '../../../health/scrape/compressed-text.ts';
import { openMetrics, prometheusText, type TextFormat } from '../../../health/scrape/exposition.ts';
import { ScrapeRounds } from '../../../health/scrape/scrape-rounds.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { readMetrics } from '../../support/report/metrics-text.ts';

function gauge(name: string, value: () => number, isLive = false): MetricFamily {
  return { name, type: 'gauge', help: name, parts: [{ labels: '', rows: [{ labels: '' }], value }], isLive };
}

/** Rounds that take `state.takesMs` each, and have their number and age as metrics. */
function start() {
  const clock = new FakeClock();
  const state = { takesMs: 0, rounds: 0, awaited: 0, own: 0, fault: '' };
  const rounds = new ScrapeRounds({
    round: async ({ isAwaited }) => {
      if (state.fault !== '') throw new Error(state.fault);
      const number = ++state.rounds;
      if (isAwaited) state.awaited++;
      const began = clock.monotonic();
      if (!isAwaited) await new Promise<void>((resolve) => clock.after(state.takesMs, resolve));
      return [gauge('round', () => number), gauge('age', () => clock.monotonic() - began, true)];
    },
    own: async () => [gauge('own', () => state.own)],
    clock,
  });
  const scrape = async (format: TextFormat = openMetrics) => {
    const text = gunzipSync(Buffer.concat(await rounds.scrape(format))).toString();
    const metrics = readMetrics(text, format.isOpen ? 'openmetrics' : 'text');
    const value = (name: string) => [...(metrics.get(name)?.samples.values() ?? [])][0];
    return { round: value('round'), age: value('age'), own: value('own') };
  };
  return { clock, state, rounds, scrape };
}

/** Moves the clock, and waits until the text of round `number` is there: it is compressed in another thread. */
async function untilRound({ clock, scrape }: ReturnType<typeof start>, number: number, milliseconds: number) {
  await clock.advance(milliseconds);
  for (let tries = 0; tries < 10_000; tries++) {
    const scraped = await scrape();
    if (scraped.round === number) return scraped;
  }
  throw new Error(`Round ${number} has not come`);
}

/** Resolves when other threads have compressed all texts. */
async function compressed(): Promise<void> {
  for (let times = 0; times < 20; times++) await keep([randomBytes(64 * 1024).toString('latin1')]);
}

test('The first scrape waits for a round, later scrapes get the last text and its age', async (t) => {
  const { clock, state, scrape } = start();
  t.deepEqual(await scrape(), { round: 1, age: 0, own: 0 });
  state.takesMs = 10_000;
  await clock.advance(2_500);
  t.is(state.rounds, 2, 'It is under way');
  t.deepEqual(await scrape(), { round: 1, age: 2_500, own: 0 });
  t.is(state.awaited, 1);
});

test('A text of many pieces is written with rests, unless a scrape waits for it', async (t) => {
  const clock = new FakeClock();
  const labels = Array.from({ length: 20_000 }, (_, at) => ({ labels: `member="${at}"` }));
  const family: MetricFamily = {
    name: 'many',
    type: 'gauge',
    help: 'many',
    parts: [{ labels: '', rows: labels, value: () => number }],
  };
  let number = 0;
  const round = async (): Promise<readonly MetricFamily[]> => {
    number++;
    return [family];
  };
  const rounds = new ScrapeRounds({ round, own: async () => [], clock });
  const shown = async (): Promise<string> =>
    gunzipSync(Buffer.concat(await rounds.scrape(prometheusText)))
      .toString()
      .slice(-20);
  t.true((await shown()).endsWith('} 1\n'), 'The first scrape waits, and the clock stands');
  await clock.advance(2_000);
  await compressed();
  t.is(number, 2);
  t.true((await shown()).endsWith('} 1\n'), 'The second text rests after its first piece');
  let text = '';
  for (let rests = 0; rests < 50 && !text.endsWith('} 2\n'); rests++) {
    await clock.advance(3);
    await compressed();
    text = await shown();
  }
  t.true(text.endsWith('} 2\n'));
});

test("A scrape gets the agent's own metrics with their current values", async (t) => {
  const { state, scrape } = start();
  await scrape();
  state.own = 7;
  t.is((await scrape()).own, 7);
});

test('Rounds repeat while scrapes come, and end five minutes after the last scrape', async (t) => {
  const host = start();
  const { clock, state, scrape } = host;
  await scrape();
  for (const number of [2, 3, 4]) await untilRound(host, number, 2_000);
  const after = async (minutes: number): Promise<number> => {
    for (let minute = 0; minute < minutes; minute++) {
      await clock.advance(60_000);
      await compressed();
    }
    return state.rounds;
  };
  t.true((await after(4)) >= 8);
  const last = await after(3);
  t.is(await after(3), last, 'Nothing is read without scrapes');
  t.deepEqual(await scrape(), { round: last + 1, age: 0, own: 0 });
  t.is(state.awaited, 2);
});

test('A round begins two seconds after the end of the previous round', async (t) => {
  const host = start();
  const { clock, state, scrape } = host;
  await scrape();
  for (const takesMs of [100, 30_000]) {
    state.takesMs = takesMs;
    const next = state.rounds + 1;
    await clock.advance(2_000);
    t.is(state.rounds, next);
    await untilRound(host, next, takesMs);
    await clock.advance(1_900);
    t.is(state.rounds, next, `${takesMs} ms`);
    await clock.advance(100);
    t.is(state.rounds, next + 1, `${takesMs} ms`);
    await untilRound(host, next + 1, takesMs);
  }
});

test('A round ends before the next scrape, if scrapes keep their interval', async (t) => {
  const { clock, state, scrape } = start();
  state.takesMs = 3_500;
  const ages: (number | undefined)[] = [];
  for (let scrapes = 1; scrapes <= 8; scrapes++) {
    ages.push((await scrape()).age);
    // Step by step, because texts are compressed in another thread.
    for (let seconds = 0; seconds < 15; seconds++) {
      await clock.advance(1_000);
      await compressed();
    }
  }
  const before = state.rounds;
  t.deepEqual(ages.slice(-4), [6_000, 6_000, 6_000, 6_000]);
  await scrape();
  await clock.advance(8_900);
  t.is(state.rounds, before);
});

test('A scrape that comes long after the last round waits for a new one', async (t) => {
  const { clock, state, scrape } = start();
  for (let scrapes = 1; scrapes <= 4; scrapes++) {
    await scrape();
    for (let seconds = 0; seconds < 30; seconds++) {
      await clock.advance(1_000);
      await compressed();
    }
  }
  await scrape();
  await clock.advance(10_000);
  const { rounds } = state;
  t.deepEqual(await scrape(), { round: rounds + 1, age: 0, own: 0 });
});

test('Scrapes in both formats get the same round', async (t) => {
  const host = start();
  t.is((await host.scrape(openMetrics)).round, 1);
  t.is((await host.scrape(prometheusText)).round, 1);
  await untilRound(host, 2, 2_000);
  t.is((await host.scrape(prometheusText)).round, 2);
});

test('Concurrent scrapes share the first round', async (t) => {
  const { state, scrape } = start();
  const all = await Promise.all([scrape(), scrape(prometheusText), scrape()]);
  t.deepEqual(
    all.map(({ round }) => round),
    [1, 1, 1],
  );
  t.is(state.rounds, 1);
});

test('A scrape fails while rounds fail, and succeeds with the next round', async (t) => {
  const { clock, state, scrape } = start();
  await scrape();
  state.fault = 'It is broken';
  await clock.advance(2_000);
  await t.throwsAsync(scrape(), { message: 'It is broken' });
  state.fault = '';
  t.is((await scrape()).round, 2);
});

test('No round begins after close()', async (t) => {
  const { clock, state, rounds, scrape } = start();
  await scrape();
  rounds.close();
  await clock.advance(10_000);
  t.is(state.rounds, 1);
});
