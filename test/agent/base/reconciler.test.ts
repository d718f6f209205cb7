import test from 'ava';
import { HeadgateError } from '../../../agent/base/errors.ts';
import { Steps } from '../../../agent/base/reconciler.ts';

/** Steps that do what the list says, one after the other, and then nothing. */
function steps(results: (boolean | Error)[], backoff: readonly [number, number] = [1, 1]) {
  const seen = { steps: 0, atOnce: 0, most: 0, done: 0, failures: [] as unknown[] };
  const made = new Steps({
    step: async () => {
      seen.steps++;
      seen.most = Math.max(seen.most, ++seen.atOnce);
      await Promise.resolve();
      seen.atOnce--;
      const result = results.shift() ?? false;
      if (result instanceof Error) throw result;
      return result;
    },
    onDone: () => {
      seen.done++;
    },
    onFailed: (error) => seen.failures.push(error),
    spacing: 1,
    backoff,
  });
  return { made, seen };
}

test('Steps does one at a time, and once more for all that came meanwhile', async (t) => {
  const { made, seen } = steps([true]);
  await made.settle();
  t.is(seen.steps, 1);
  const first = made.settle();
  for (let n = 0; n < 5; n++) void made.settle();
  await first;
  t.is(seen.steps, 3);
  t.is(seen.most, 1);
  t.false(made.isUnderWay);
});

test('Steps tries again what has failed until it is done', async (t) => {
  const { made, seen } = steps([new Error('one'), new Error('two')]);
  // The timers of retries keep no process alive.
  const alive = setInterval(() => undefined, 1_000);
  await made.settle();
  while (seen.done === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  clearInterval(alive);
  t.is(seen.steps, 3);
  t.deepEqual(
    seen.failures.map((error) => (error as Error).message),
    ['one', 'two'],
  );
});

test('Steps does nothing any more once it is closed', async (t) => {
  const refused = new HeadgateError('KEEPALIVED_REJECTED', 'no', { retry: 'never' });
  const { made, seen } = steps([refused], [1, 5]);
  await made.settle();
  await made.close();
  await made.settle();
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.is(seen.steps, 1);
});
