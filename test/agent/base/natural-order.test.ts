import test from 'ava';
import fc from 'fast-check';
import { inNaturalOrder } from '../../../agent/base/natural-order.ts';

test('inNaturalOrder() reads digits as numbers', (t) => {
  const names = [
    'new-10',
    'new-2',
    'new-1',
    'new',
    'web-2-b',
    'web-2-a',
    'web-10-a',
    'a/2',
    'a/10',
    'a-1/1',
    '007',
    '7',
    '8',
  ];
  t.deepEqual(names.sort(inNaturalOrder), [
    '007',
    '7',
    '8',
    'a-1/1',
    'a/2',
    'a/10',
    'new',
    'new-1',
    'new-2',
    'new-10',
    'web-2-a',
    'web-2-b',
    'web-10-a',
  ]);
});

test('inNaturalOrder() is an order, for any texts', (t) => {
  const text = fc.stringMatching(/^[a-c0-2\-/]{0,8}$/);
  t.notThrows(() =>
    fc.assert(
      fc.property(text, text, text, (a, b, c) => {
        const ab = Math.sign(inNaturalOrder(a, b));
        if (ab !== -Math.sign(inNaturalOrder(b, a))) return false;
        if ((ab === 0) !== (a === b)) return false;
        return !(ab <= 0 && inNaturalOrder(b, c) <= 0) || inNaturalOrder(a, c) <= 0;
      }),
      { numRuns: 5_000 },
    ),
  );
});
