import test from 'ava';
import { WritePace } from '../../../../agent/haproxy/config/write-pace.ts';

/** Each change comes as soon as the write before is done; gives the milliseconds from there to the next write. */
function waits(pace: WritePace, writes: number, took: number): readonly number[] {
  let now = 0;
  return Array.from({ length: writes }, () => {
    const delay = pace.delay(now);
    now += delay;
    pace.begins(now);
    pace.wrote(now, now + took);
    now += took;
    return delay;
  });
}

test('The first change after a quiet time is written soon, whatever was before', (t) => {
  const pace = new WritePace();
  waits(pace, 6, 10);
  t.is(pace.delay(100_000), 800);
});

test('Where changes never end the rests grow to five seconds', (t) => {
  t.deepEqual(waits(new WritePace(), 6, 10), [800, 1_000, 2_000, 4_000, 5_000, 5_000]);
});

test('A change that comes when the last rest is over finds a short one after its write', (t) => {
  const pace = new WritePace();
  waits(pace, 4, 10);
  pace.delay(100_000);
  pace.begins(100_800);
  pace.wrote(100_800, 100_810);
  t.is(pace.delay(100_810), 1_000);
});

test('A file that takes long to write rests for fifty times as long, but no longer than five seconds', (t) => {
  t.deepEqual(waits(new WritePace(), 2, 60), [800, 3_000]);
  t.deepEqual(waits(new WritePace(), 2, 1_000), [800, 5_000]);
});

test('A change during a write waits for the rest after it', (t) => {
  const pace = new WritePace();
  pace.begins(0);
  t.is(pace.delay(5), 995);
  pace.wrote(0, 10);
  t.is(pace.delay(10), 1_000);
});
