import test from 'ava';
import { DueTimer } from '../../../agent/base/due-timer.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

/** A timer whose work takes `workMs`, with the times at which its work began. */
function timer(workMs = 0) {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const began: number[] = [];
  let nextDue = Number.POSITIVE_INFINITY;
  const made = new DueTimer({
    work: () => {
      began.push(clock.monotonic() - start);
      return new Promise((resolve) => clock.after(workMs, resolve));
    },
    nextDue: () => nextDue,
    clock,
  });
  return {
    clock,
    began,
    made,
    wakeAt: (at: number) => made.wakeAt(start + at),
    setNext: (at: number) => {
      nextDue = start + at;
    },
  };
}

test('DueTimer works at the earliest of several times', async (t) => {
  const { clock, began, wakeAt } = timer();
  wakeAt(200);
  wakeAt(100);
  wakeAt(300);
  await clock.advance(1_000);
  t.deepEqual(began, [100]);
});

test('DueTimer works at once if the time is over', async (t) => {
  const { clock, began, wakeAt } = timer();
  wakeAt(-1_000);
  await clock.advance(0);
  t.deepEqual(began, [0]);
});

test('DueTimer works again when the next work is due, and never for Infinity', async (t) => {
  const { clock, began, wakeAt, setNext } = timer();
  setNext(250);
  wakeAt(100);
  await clock.advance(200);
  setNext(Number.POSITIVE_INFINITY);
  await clock.advance(1_000);
  t.deepEqual(began, [100, 250]);
});

test('DueTimer runs one work at a time', async (t) => {
  const { clock, began, wakeAt, setNext } = timer(500);
  wakeAt(100);
  await clock.advance(150);
  setNext(200);
  wakeAt(160);
  await clock.advance(400);
  t.deepEqual(began, [100]);
  await clock.advance(100);
  t.deepEqual(began, [100, 600]);
});

test('A closed DueTimer begins no work', async (t) => {
  const { clock, began, made, wakeAt, setNext } = timer(500);
  wakeAt(100);
  await clock.advance(150);
  setNext(700);
  made.close();
  wakeAt(650);
  await clock.advance(1_000);
  t.deepEqual(began, [100]);
});

test('DueTimer can be closed before its first work', async (t) => {
  const { clock, began, made, wakeAt } = timer();
  wakeAt(100);
  made.close();
  await clock.advance(1_000);
  t.deepEqual(began, []);
});
