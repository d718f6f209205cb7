import test from 'ava';
import fc from 'fast-check';
import { portionsOf } from '../../../agent/base/portions.ts';

test('portionsOf() keeps the portions without a change', (t) => {
  const list = Array.from({ length: 200 }, (_, at) => ({ at }));
  const before = portionsOf(list, []);
  t.deepEqual(before.flat(), list);
  const after = portionsOf(list.with(70, { at: 0 }), before);
  t.deepEqual(
    after.map((portion, at) => portion === before[at]),
    [true, false, true, true],
  );
  t.is(portionsOf(list.slice(0, 199), before)[2], before[2]);
});

test('portionsOf() gives all items in their order, whatever the list was', (t) => {
  const lists = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 150 });
  fc.assert(
    fc.property(lists, lists, (before, now) => {
      t.deepEqual(portionsOf(now, portionsOf(before, [])).flat(), now);
    }),
  );
});
