import test from 'ava';
import { type Machine, requires } from './requirements.ts';

const machine = (given: Partial<Machine>): Machine => ({
  uid: 1000,
  capabilities: 0n,
  allowSkip: false,
  has: () => false,
  ...given,
});

test('requires() returns the same test function if all requirements are met', (t) => {
  const able = machine({
    uid: 0,
    capabilities: (1n << 41n) - 1n,
    has: (program) => program === 'haproxy' || program === 'ip',
  });
  t.is(requires(test, { haproxy: true, root: true, programs: ['ip'] }, able), test);
  t.is(requires(test, {}, machine({})), test);
});

test('requires() returns another test function if a requirement is not met', (t) => {
  t.not(requires(test, { root: true }, machine({ uid: 1000 })), test);
  // The capabilities of root in an ordinary container.
  t.not(requires(test, { root: true }, machine({ uid: 0, capabilities: 0xa80425fbn })), test);
  t.not(requires(test, { haproxy: true }, machine({ uid: 0 })), test);
  t.not(requires(test, { programs: ['ip'] }, machine({ uid: 0, allowSkip: true })), test);
});
