import test from 'ava';
import { Attempts } from '../../../../agent/kubernetes/api/attempts.ts';

const attempts = (): Attempts => new Attempts(() => 1);

test('pause() is 0 without failures, and short after a broken connection', (t) => {
  const all = attempts();
  t.is(all.pause(0, false), 0);
  t.is(all.pause(0, true), 100);
});

test('pause() grows with failures in a row, and an answer ends that', (t) => {
  const all = attempts();
  all.failed();
  t.is(all.pause(0, false), 800);
  all.failed();
  t.is(all.pause(0, true), 1_600);
  t.true(all.answered());
  t.false(all.answered());
  t.is(all.pause(0, false), 0);
});

test('pause() grows with watches that bring nothing, from the second one on', (t) => {
  const all = attempts();
  all.watched(false);
  t.is(all.pause(0, false), 0);
  all.watched(false);
  t.is(all.pause(0, false), 800);
  all.watched(true);
  t.is(all.pause(0, false), 0);
});

test('pause() is never shorter than what the API server asks for', (t) => {
  const all = attempts();
  t.is(all.pause(5_000, true), 5_000);
  all.watched(false);
  all.watched(false);
  t.is(all.pause(5_000, false), 5_000);
  all.failed();
  t.is(all.pause(5_000, false), 5_000);
});

test('nudge() ends a wait after failures and no other; wake() ends any', async (t) => {
  const all = attempts();
  let isOver = false;
  const well = all.wait(60_000).then(() => {
    isOver = true;
  });
  all.nudge();
  await Promise.resolve();
  t.false(isOver);
  all.wake();
  await well;
  all.failed();
  all.pause(0, false);
  const failing = all.wait(60_000);
  all.nudge();
  await t.notThrowsAsync(failing);
});

test('nudge() does not cut short what the API server has asked for', async (t) => {
  const all = attempts();
  all.failed();
  const asked = all.wait(all.pause(60_000, false));
  let isOver = false;
  void asked.then(() => {
    isOver = true;
  });
  all.nudge();
  await Promise.resolve();
  t.false(isOver);
  all.wake();
  await asked;
});
