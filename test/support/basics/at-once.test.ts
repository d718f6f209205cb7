import test from 'ava';
import { atOnce } from './at-once.ts';

/** A test that ends when it is told to. */
function holder() {
  const ends: (() => void)[] = [];
  return {
    t: { teardown: (end: () => void) => void ends.push(end) } as never,
    end: () => void ends.map((each) => each()),
  };
}

test('A test waits for a place, keeps it for all that it starts, and gives it to the next', async (t) => {
  const turn = atOnce(2);
  const [first, second, third] = [holder(), holder(), holder()];
  await turn(first.t);
  await turn(first.t);
  await turn(second.t);
  const begun: string[] = [];
  const last = turn(third.t).then(() => begun.push('third'));
  await Promise.resolve();
  t.deepEqual(begun, []);
  first.end();
  await last;
  t.deepEqual(begun, ['third']);
});
