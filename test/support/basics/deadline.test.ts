import test from 'ava';
import { Deadline } from './deadline.ts';

/** The milliseconds after which the deadline is over if each check takes this long. */
function overAfter(look: number): number {
  let now = 1_000;
  const deadline = new Deadline(300, 30, () => now);
  do now += look;
  while (!deadline.isOver);
  return now - 1_000;
}

test('Deadline is over after its timeout if checks take their interval', (t) => {
  t.is(overAfter(10), 300);
  t.is(overAfter(30), 300);
});

test('Deadline is over after at most four timeouts if checks are slow', (t) => {
  t.is(overAfter(60), 600);
  t.is(overAfter(100), 1_000);
  t.is(overAfter(200), 1_200);
});

test('pause() waits as long as the check took, and 300 ms at most', async (t) => {
  let now = 0;
  const deadline = new Deadline(300, 30, () => now);
  for (const [took, least, most] of [
    [100, 95, 4_000],
    [5_000, 290, 4_000],
  ] as const) {
    now += took;
    const began = performance.now();
    await deadline.pause();
    const waited = performance.now() - began;
    t.true(waited >= least && waited < most, `${waited} ms after a check of ${took} ms`);
  }
});
