import test from 'ava';
import { Fault } from '../../../agent/base/fault.ts';

test('Fault reports when it appears, changes and disappears, and not in between', (t) => {
  const fault = new Fault();
  t.deepEqual(
    [fault.clear(), fault.set('a'), fault.set('a'), fault.set('b'), fault.text, fault.clear(), fault.clear()],
    [false, true, false, true, 'b', true, false],
  );
  t.is(fault.text, '');
});
