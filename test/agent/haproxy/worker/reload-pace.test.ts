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

test('Short reloads keep the configured interval', (t) => {
  t.deepEqual(rests(new ReloadPace(), 5, { took: 50 }), [1_000, 1_000, 1_000, 1_000, 1_000]);
});

test('After two reloads at the configured interval, the interval is twenty times the duration of a reload', (t) => {
  t.deepEqual(rests(new ReloadPace(), 5, { took: 200 }), [1_000, 3_000, 4_000, 4_000, 4_000]);
});

test('The wait is at most five intervals', (t) => {
  t.deepEqual(rests(new ReloadPace(), 4, { took: 4_000 }), [1_000, 4_000, 5_000, 5_000]);
  t.deepEqual(rests(new ReloadPace(), 4, { took: 300, interval: 100 }), [100, 400, 500, 500]);
});

test('After a rest two reloads follow at the configured interval again', (t) => {
  const pace = new ReloadPace();
  rests(pace, 5, { took: 200 });
  t.deepEqual(rests(pace, 3, { took: 200, from: 60_000 }), [1_000, 3_000, 4_000]);
});

test('A shorter interval shortens the present wait', (t) => {
  const pace = new ReloadPace();
  pace.reloaded(0, 200, 600_000);
  pace.reloaded(600_200, 600_400, 600_000);
  t.is(pace.rest(600_400, 100), 500);
});
