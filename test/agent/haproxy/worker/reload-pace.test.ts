import test from 'ava';
import { ReloadPace } from '../../../../agent/haproxy/worker/reload-pace.ts';

const SECOND = 1_000;

/** Each reload is asked for as soon as the one before is done; gives the milliseconds between them. */
function rests(pace: ReloadPace, reloads: number, { took, interval = SECOND, from = 0 }: Stream): number[] {
  let now = from;
  return Array.from({ length: reloads }, () => {
    pace.reloaded(now, now + took, interval);
    now += took;
    const rest = pace.rest(now, interval);
    now += rest;
    return rest;
  });
}

interface Stream {
  /** Milliseconds. */
  readonly took: number;
  readonly interval?: number;
  readonly from?: number;
}

test('Reloads that take little are an interval apart, however long they go on', (t) => {
  t.deepEqual(rests(new ReloadPace(), 5, { took: 50 }), [1_000, 1_000, 1_000, 1_000, 1_000]);
});

test('Of reloads that go on and on two come an interval apart, and then they are twenty times as far apart as one takes', (t) => {
  t.deepEqual(rests(new ReloadPace(), 5, { took: 200 }), [1_000, 3_000, 4_000, 4_000, 4_000]);
});

test('Nobody waits for longer than five intervals', (t) => {
  t.deepEqual(rests(new ReloadPace(), 4, { took: 4_000 }), [1_000, 4_000, 5_000, 5_000]);
  t.deepEqual(rests(new ReloadPace(), 4, { took: 300, interval: 100 }), [100, 400, 500, 500]);
});

test('After a rest two reloads come an interval apart again', (t) => {
  const pace = new ReloadPace();
  rests(pace, 5, { took: 200 });
  t.deepEqual(rests(pace, 3, { took: 200, from: 60_000 }), [1_000, 3_000, 4_000]);
});

test('With a shorter interval nobody waits for what the longer one has put off', (t) => {
  const pace = new ReloadPace();
  pace.reloaded(0, 200, 600_000);
  pace.reloaded(600_200, 600_400, 600_000);
  t.is(pace.rest(600_400, 100), 500);
});
