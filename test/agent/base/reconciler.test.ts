import test from 'ava';
import { HeadgateError } from '../../../agent/base/errors.ts';
import { Reconciler } from '../../../agent/base/reconciler.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

/** A reconciler whose steps have the results of the list, and change nothing after that. */
function reconciler(results: (boolean | Error)[]) {
  const clock = new FakeClock();
  const seen = { steps: 0, atOnce: 0, most: 0, done: 0, failures: [] as unknown[] };
  const made = new Reconciler({
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
    spacingMs: 10,
    backoff: { firstMs: 100, mostMs: 400 },
    clock,
  });
  return { clock, made, seen };
}

test('Reconciler runs one step at a time, and one more for all changes during it', async (t) => {
  const { clock, made, seen } = reconciler([true]);
  const first = made.reconcile();
  for (let n = 0; n < 5; n++) void made.reconcile();
  await clock.advance(9);
  t.is(seen.steps, 1);
  await clock.advance(1);
  await first;
  t.is(seen.steps, 2);
  t.is(seen.most, 1);
  t.false(made.isUnderWay);
});

test('Reconciler retries a failed step with growing waits until it succeeds', async (t) => {
  const { clock, made, seen } = reconciler([new Error('one'), new Error('two')]);
  await made.reconcile();
  await clock.advance(99);
  t.is(seen.steps, 1);
  await clock.advance(1 + 199);
  t.is(seen.steps, 2);
  await clock.advance(1);
  t.is(seen.steps, 3);
  t.is(seen.done, 1);
  t.deepEqual(
    seen.failures.map((error) => (error as Error).message),
    ['one', 'two'],
  );
});

test('Reconciler waits longest after an error that must not be retried, and stops at close()', async (t) => {
  const refused = new HeadgateError('KEEPALIVED_REJECTED', 'no', { retry: 'never' });
  const { clock, made, seen } = reconciler([refused, refused]);
  await made.reconcile();
  await clock.advance(399);
  t.is(seen.steps, 1);
  await clock.advance(1);
  t.is(seen.steps, 2);
  await made.close();
  await made.reconcile();
  await clock.advance(10_000);
  t.is(seen.steps, 2);
});
