import test from 'ava';
import { readWorker } from '../../../../agent/haproxy/stats/worker-reader.ts';
import { proxyRows } from '../../../support/stat-answers.ts';

/** The questions to a worker with this number of proxies, the rows that were read, and the durations given to pause(). */
async function reading(proxies: number, kinds = 7) {
  const asked: string[] = [];
  const keys: string[] = [];
  const rests: number[] = [];
  let now = 0;
  await readWorker({
    runtime: {
      askAll: async (lines) => {
        now += 3;
        asked.push(...lines);
        return lines.map((line) =>
          proxyRows(
            line,
            Array.from({ length: proxies }, (_, at) => `proxy-${at}`),
          ),
        );
      },
    },
    lane: 'bulk',
    kinds,
    onRow: ({ proxy, name }) => keys.push(`${proxy},${name}`),
    pause: async (tookMs) => {
      rests.push(tookMs);
    },
    now: () => now,
  });
  return { asked, keys, rests };
}

test('readWorker() reads proxies by their number until a portion has none', async (t) => {
  const { asked, keys } = await reading(20, 6);
  t.is(asked[0], 'show stat 1 6 -1');
  t.is(asked.at(-1), 'show stat 48 6 -1');
  t.deepEqual(
    keys.filter((key) => key.endsWith(',BACKEND')),
    Array.from({ length: 20 }, (_, at) => `proxy-${at},BACKEND`),
  );
});

test('readWorker() pauses after each portion by its duration', async (t) => {
  t.deepEqual((await reading(20)).rests, [3, 3]);
  t.deepEqual((await reading(0)).rests, []);
});

test('readWorker() rejects on any other answer', async (t) => {
  const options = { lane: 'bulk', kinds: 7, pause: async () => undefined, now: () => 0 } as const;
  const runtime = { askAll: async () => ['Permission denied'] };
  await t.throwsAsync(readWorker({ ...options, runtime, onRow: () => undefined }), { code: 'RUNTIME_REPLY' });
});
