import test from 'ava';
import { lowest, moreThan } from './side-measures.ts';

test('lowest() ignores values that only one reading has', (t) => {
  const one = new Map([
    ['timers', 15],
    ['sockets', 6],
    ['requests', 2],
  ]);
  const other = new Map([
    ['timers', 14],
    ['sockets', 8],
    ['processes', 1],
  ]);
  t.deepEqual(
    [...lowest(one, other)],
    [
      ['timers', 14],
      ['sockets', 6],
      ['requests', 0],
    ],
  );
});

test('moreThan() names each value that has grown by more than allowed, even from nothing', (t) => {
  const before = new Map([
    ['timers', 14],
    ['megabytes', 20.5],
  ]);
  const now = new Map([
    ['timers', 15],
    ['megabytes', 24],
    ['pipes', 2],
  ]);
  const allowed = (name: string): number => (name === 'megabytes' ? 3 : 1);
  t.deepEqual(moreThan(before, now, allowed), ['megabytes: 20.5 → 24', 'pipes: 0 → 2']);
});
