import test from 'ava';
import {
  BIN_MS,
  BINS,
  MAX_SLOTS,
  recordOf,
  type Traffic,
  TrafficHistory,
} from '../../../../agent/report/page/traffic-history.ts';

const LAST = `lb-${MAX_SLOTS - 1}`;
const QUIET: Traffic = recordOf(() => 0);

function traffic(rate: number, open = 0): Traffic {
  return { ...QUIET, rate, open };
}

/** Records traffic of `web` at the bins; undefined: nothing is known of it. */
function recorded(...bins: readonly (readonly [bin: number, rate: number | undefined])[]): TrafficHistory {
  const history = new TrafficHistory();
  for (const [bin, rate] of bins)
    history.record(
      bin * BIN_MS,
      new Map(rate === undefined ? [] : [['web', traffic(rate, rate > 0 ? 1 : 0)]]),
    );
  return history;
}

for (const [title, bins, rates] of [
  ['nothing', [], []],
  ['the first round', [[100, 5]], [5]],
  [
    'each round',
    [
      [100, 5],
      [101, 6],
      [102, 7],
    ],
    [5, 6, 7],
  ],
  [
    'the time since the round before',
    [
      [100, 5],
      [103, 8],
    ],
    [5, 8, 8, 8],
  ],
  [
    'the greater of two rounds in one bin',
    [
      [100, 5],
      [101, 6],
      [101, 0],
      [102, 1],
    ],
    [5, 6, 1],
  ],
  [
    'a time before its first connection',
    [
      [100, 0],
      [101, 0],
      [102, 4],
    ],
    [0, 0, 4],
  ],
  [
    'a time without it',
    [
      [100, 4],
      [101, undefined],
    ],
    [4, 0],
  ],
  [
    'the rounds after a long rest only',
    [
      [100, 5],
      [100 + BINS + 1, 6],
      [100 + BINS + 2, 7],
    ],
    [6, 7],
  ],
  ['the last two minutes', Array.from({ length: 30 }, (_, at) => [100 + at, at + 1] as const), range(7, 30)],
] as readonly (readonly [string, readonly (readonly [number, number | undefined])[], readonly number[]])[])
  test(`The history has ${title}`, (t) => {
    const found = recorded(...bins).of('web');
    t.deepEqual(found.rate, rates);
    t.deepEqual(
      found.open,
      rates.map((rate) => Number(rate > 0)),
    );
  });

test('A load balancer that was always quiet has zeros, and no latency', (t) => {
  t.deepEqual(
    recorded([100, 1], [101, 1]).of('other'),
    recordOf((measure) => (measure === 'latency' ? [Number.NaN, Number.NaN] : [0, 0])),
  );
});

test('The number of load balancers is limited, and a quiet one makes room', (t) => {
  const history = new TrafficHistory();
  const busy = (first: number, count: number): ReadonlyMap<string, Traffic> =>
    new Map(Array.from({ length: count }, (_, at) => [`lb-${first + at}`, traffic(first + at + 1)]));
  history.record(0, busy(0, MAX_SLOTS + 1));
  t.deepEqual(history.of(`lb-${MAX_SLOTS - 1}`).rate, [MAX_SLOTS]);
  t.deepEqual(history.of(`lb-${MAX_SLOTS}`).rate, [], 'there is no room');
  // All but the last become quiet.
  for (let bin = 1; bin <= BINS; bin++)
    history.record(
      bin * BIN_MS,
      new Map([
        [LAST, traffic(1)],
        ['lb-1', QUIET],
      ]),
    );
  history.record((BINS + 1) * BIN_MS, busy(MAX_SLOTS, MAX_SLOTS - 1));
  for (const at of [MAX_SLOTS, 2 * MAX_SLOTS - 2])
    t.deepEqual(history.of(`lb-${at}`).rate, [...Array(BINS - 1).fill(0), at + 1]);
  t.deepEqual(history.of(LAST).rate, [...Array(BINS - 1).fill(1), 0], 'no slot is used twice');
});

test('A slot has nothing of the load balancer that had it before a long rest', (t) => {
  const history = new TrafficHistory();
  const busy = traffic(9, 9);
  for (let bin = 0; bin < BINS; bin++) history.record(bin * BIN_MS, new Map([['old', busy]]));
  const later = 10 * BINS * BIN_MS;
  history.record(later, new Map());
  history.record(later + BIN_MS, new Map());
  history.record(later + 2 * BIN_MS, new Map([['new', busy]]));
  t.like(history.of('new'), { rate: [0, 0, 9], open: [0, 0, 9] });
});

test('Each measure has its own values, and an unknown one stays unknown', (t) => {
  const history = new TrafficHistory();
  const now: Traffic = { ...recordOf((_, at) => at + 1), latency: Number.NaN };
  history.record(0, new Map([['web', now]]));
  t.deepEqual(
    history.of('web'),
    recordOf((measure) => [now[measure]]),
  );
});

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

test('A first round knows open connections and no rate, of quiet load balancers too', (t) => {
  const history = new TrafficHistory();
  history.record(100 * BIN_MS, new Map([['web', traffic(Number.NaN, 1)]]));
  history.record(101 * BIN_MS, new Map([['web', traffic(2, 1)]]));
  const { rate, open } = history.of('other');
  t.deepEqual([...rate], [Number.NaN, 0]);
  t.deepEqual([...open], [0, 0]);
  t.deepEqual(history.of('web').rate, [Number.NaN, 2]);
});
