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
    const waited = await pauseOf(deadline);
    t.true(waited >= least && waited < most, `${waited} ms after a check of ${took} ms`);
  }
});

test('pause() waits longer the longer the wait is, and the deadline counts that', async (t) => {
  let now = 0;
  const deadline = new Deadline(1_500, 30, () => now);
  t.false(deadline.isOver);
  // The pause of the real clock does not advance the time of this one.
  for (const passed of [500, 1_000]) {
    now = passed - 1;
    await deadline.pause();
    now = passed;
    const waited = await pauseOf(deadline);
    t.true(waited >= 0.04 * passed - 2, `${waited} ms after ${passed} ms`);
  }
  now = 1_500;
  t.false(deadline.isOver, 'a few checks in all that time: the machine is busy');
  for (let left = 30; left > 0; left--) await deadline.pause();
  t.true(deadline.isOver, 'as many pauses as fit');
});

async function pauseOf(deadline: Deadline): Promise<number> {
  const began = performance.now();
  await deadline.pause();
  return performance.now() - began;
}
