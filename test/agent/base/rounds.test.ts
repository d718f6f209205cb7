import test from 'ava';
import { Rounds } from '../../../agent/base/rounds.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

function rounds(work: () => void | Promise<void>) {
  const clock = new FakeClock();
  const failures: unknown[] = [];
  let intervalMs = 100;
  const made = new Rounds({
    intervalMs: () => intervalMs,
    work,
    onFailed: (error) => failures.push(error),
    clock,
  });
  const interval = (milliseconds: number): void => {
    intervalMs = milliseconds;
  };
  return { clock, failures, made, interval };
}

test('Rounds begins a round one interval after the end of the last one', async (t) => {
  let count = 0;
  let end = (): void => undefined;
  const { clock, made } = rounds(
    () =>
      new Promise((resolve) => {
        count++;
        end = resolve;
      }),
  );
  made.start();
  await clock.advance(99);
  t.is(count, 0);
  await clock.advance(500);
  t.is(count, 1);
  end();
  await clock.advance(99);
  t.is(count, 1);
  await clock.advance(1);
  t.is(count, 2);
  made.close();
  end();
  await clock.advance(1_000);
  t.is(count, 2);
});

test('Rounds continues after a round that failed', async (t) => {
  const { clock, failures, made } = rounds(() => {
    throw new Error('no');
  });
  made.start();
  await clock.advance(200);
  t.is(failures.length, 2);
  made.close();
});

test('now() returns the round under way instead of beginning a second one, and retime() starts the interval again', async (t) => {
  let count = 0;
  const { clock, made, interval } = rounds(async () => {
    count++;
    await Promise.resolve();
  });
  made.start();
  await Promise.all([made.now(), made.now()]);
  t.is(count, 1);
  interval(10);
  made.retime();
  await clock.advance(10);
  t.is(count, 2);
  made.close();
});
