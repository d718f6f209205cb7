import test from 'ava';
import {
  fullStanding,
  nextStanding,
  type Signs,
  type Standing,
} from '../../../../agent/pair/standing/standing.ts';

const well: Signs = { haproxy: '', listeners: '', maintenance: false, failover: false, catchingUp: '' };
const silent: Signs = { ...well, haproxy: 'HAProxy does not answer' };
const PATIENCE = { pairLowerAfter: 1_000, pairRaiseAfter: 10_000 };

/** The reasons after each of these moments. */
function reasonsOver(moments: readonly (readonly [now: number, signs: Signs])[]): readonly string[] {
  let standing: Standing = fullStanding;
  return moments.map(([now, signs]) => {
    standing = nextStanding(standing, signs, now, PATIENCE);
    return standing.lowered.map(({ reason }) => reason).join();
  });
}

test('A silent HAProxy lowers the host after the delay', (t) => {
  const moments = [
    [0, silent],
    [999, silent],
    [1_000, silent],
  ] as const;
  t.deepEqual(reasonsOver(moments), ['', '', 'haproxy']);
});

test('One good moment restarts the delay, so that slow flapping lowers nothing', (t) => {
  const moments = [
    [0, silent],
    [900, silent],
    [950, well],
    [1_000, silent],
    [1_900, silent],
    [2_000, silent],
  ] as const;
  t.deepEqual(reasonsOver(moments), ['', '', '', '', '', 'haproxy']);
});

test('The host is raised only after HAProxy was well for the whole delay', (t) => {
  const moments = [
    [0, silent],
    [1_000, silent],
    [2_000, well],
    [11_999, well],
    [11_999.5, silent],
    [12_000, well],
    [21_999, well],
    [22_000, well],
  ] as const;
  const lowered = Array.from({ length: 6 }, () => 'haproxy');
  t.deepEqual(reasonsOver(moments), ['', ...lowered, '']);
});

test("An operator's order counts at once, in both directions", (t) => {
  const moments = [
    [0, { ...well, maintenance: true }],
    [1, well],
    [2, { ...well, failover: true }],
    [3, well],
  ] as const;
  t.deepEqual(reasonsOver(moments), ['maintenance', '', 'failover', '']);
});

test('Reasons are sorted by weight, each with its current message', (t) => {
  const all: Signs = {
    haproxy: 'a',
    listeners: 'b',
    maintenance: true,
    failover: true,
    catchingUp: 'c',
  };
  const first = nextStanding(fullStanding, all, 0, PATIENCE);
  const { lowered } = nextStanding(first, { ...all, catchingUp: 'd' }, 1_000, PATIENCE);
  t.deepEqual(
    lowered.map(({ reason }) => reason),
    ['haproxy', 'listeners', 'maintenance', 'failover', 'catching-up'],
  );
  t.is(lowered.at(-1)?.message, 'd');
  t.is(lowered[0]?.message, 'a');
});
