import test from 'ava';
import { Deadline } from './deadline.ts';

/** After how many milliseconds it is over where each look takes so long. */
function overAfter(look: number): number {
  let now = 1_000;
  const deadline = new Deadline(300, 30, () => now);
  do now += look;
  while (!deadline.isOver);
  return now - 1_000;
}

test('A deadline is over when its time is, where looks are as quick as they should be', (t) => {
  t.is(overAfter(10), 300);
  t.is(overAfter(30), 300);
});

test('A deadline is later where looks are slow, but only four times', (t) => {
  t.is(overAfter(60), 600);
  t.is(overAfter(100), 1_000);
  t.is(overAfter(200), 1_200);
});
