import test from 'ava';
import { FailureWindow, type Interval } from '../../../agent/dataplane/failure-window.ts';

const interval = (tried: number, failed: number): Interval => ({
  unit: 'connections',
  tried,
  failed,
  hasSuccess: tried > failed,
});

test('FailureWindow says all after the last success, and counts from there', (t) => {
  const window = new FailureWindow(60_000);
  window.add(interval(30, 12), 10_000);
  t.deepEqual([window.share, window.sum().tried, window.sum().failed], ['some', 30, 12]);
  window.add(interval(25, 25), 20_000);
  t.like(window.sum(), { tried: 25, failed: 25, isAll: true });
  t.is(window.share, 'all');
  // No client tries any more: what is known stays.
  window.add(interval(0, 0), 30_000);
  t.is(window.share, 'all');
  window.add(interval(20, 0), 40_000);
  t.like(window.sum(), { tried: 75, failed: 37, isAll: false });
  t.is(window.share, 'some');
});

test('FailureWindow forgets what is older than a minute', (t) => {
  const window = new FailureWindow(60_000);
  window.add(interval(25, 25), 10_000);
  t.true(window.isOpen);
  window.add(interval(0, 0), 70_000);
  t.false(window.isOpen);
  t.is(window.share, 'none');
});

test('FailureWindow calls neither one nor two failures anything, nor a small share of many', (t) => {
  const few = new FailureWindow(60_000);
  few.add(interval(2, 2), 10_000);
  t.is(few.share, 'none');
  const small = new FailureWindow(60_000);
  small.add(interval(1_000, 99), 10_000);
  t.is(small.share, 'none');
  small.add(interval(0, 0), 20_000);
  const tenth = new FailureWindow(60_000);
  tenth.add(interval(1_000, 100), 10_000);
  t.is(tenth.share, 'some');
});

test('FailureWindow begins with the first failure', (t) => {
  const window = new FailureWindow(60_000);
  window.add(interval(1_000, 0), 10_000);
  window.add(interval(10, 5), 20_000);
  t.like(window.sum(), { tried: 10, failed: 5 });
});
