import test from 'ava';
import { DueTimer } from '../../../agent/base/due-timer.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

test('DueTimer works at the earliest of the due times', async (t) => {
  const { timer, calls, clock } = started([Number.POSITIVE_INFINITY]);
  timer.wakeAt(clock.monotonic() + 300);
  timer.wakeAt(clock.monotonic() + 100);
  timer.wakeAt(clock.monotonic() + 200);
  await clock.advance(99);
  t.is(calls.length, 0);
  await clock.advance(1);
  t.is(calls.length, 1);
  await clock.advance(1_000);
  t.is(calls.length, 1);
});

test('DueTimer works again at the next due time after the work', async (t) => {
  const { timer, calls, clock } = started([1_500, Number.POSITIVE_INFINITY]);
  timer.wakeAt(clock.monotonic());
  await clock.advance(0);
  t.is(calls.length, 1);
  await clock.advance(1_500 - clock.monotonic());
  t.is(calls.length, 2);
});

test('DueTimer never works twice at the same time', async (t) => {
  const clock = new FakeClock();
  const { promise, resolve } = Promise.withResolvers<void>();
  let calls = 0;
  let due = Number.POSITIVE_INFINITY;
  const work = () => {
    calls++;
    due = Number.POSITIVE_INFINITY;
    return promise;
  };
  const timer = new DueTimer(work, () => due, clock);
  timer.wakeAt(clock.monotonic());
  await clock.advance(0);
  timer.wakeAt(clock.monotonic() + 10);
  await clock.advance(100);
  t.is(calls, 1);
  due = clock.monotonic() + 50;
  resolve();
  await clock.advance(49);
  t.is(calls, 1);
  await clock.advance(1);
  t.is(calls, 2);
});

test('DueTimer misses nothing that becomes due while the work ends', async (t) => {
  const clock = new FakeClock();
  const { promise, resolve } = Promise.withResolvers<void>();
  let calls = 0;
  let due = Number.POSITIVE_INFINITY;
  const work = async () => {
    calls++;
    await promise;
    // After the end of the work, but before the timer continues.
    if (calls === 1)
      queueMicrotask(() => {
        due = clock.monotonic() + 50;
        timer.wakeAt(due);
      });
    else due = Number.POSITIVE_INFINITY;
  };
  const timer = new DueTimer(work, () => due, clock);
  timer.wakeAt(clock.monotonic());
  await clock.advance(0);
  resolve();
  await clock.advance(50);
  t.is(calls, 2);
});

test('DueTimer does nothing after close()', async (t) => {
  const { timer, calls, clock } = started([]);
  timer.wakeAt(clock.monotonic() + 10);
  timer.close();
  timer.wakeAt(clock.monotonic() + 20);
  await clock.advance(100);
  t.is(calls.length, 0);
});

/** `dueTimes`: the next due time after each call. */
function started(dueTimes: readonly number[]) {
  const clock = new FakeClock();
  const calls: number[] = [];
  const work = async () => {
    calls.push(clock.monotonic());
  };
  const timer = new DueTimer(work, () => dueTimes[calls.length - 1] ?? Number.POSITIVE_INFINITY, clock);
  return { timer, calls, clock };
}
