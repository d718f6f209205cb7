import test from 'ava';
import fc from 'fast-check';
import { differing } from '../../../agent/model/differing.ts';

const list = fc.uniqueArray(fc.integer({ min: 0, max: 12 }), { maxLength: 10 });

test('differing() gives what only one of two lists has', (t) => {
  fc.assert(
    fc.property(list, list, (before, now) => {
      const { gone, fresh } = differing(before, now);
      t.deepEqual([...gone].toSorted(), before.filter((each) => !now.includes(each)).toSorted());
      t.deepEqual(
        fresh,
        now.filter((each) => !before.includes(each)),
      );
    }),
  );
});
