import test from 'ava';
import fc from 'fast-check';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';

test('AclIds gives the same id on every host and after every restart', (t) => {
  t.is(new AclIds().idOf('default:web:tcp:80:v4', 0), 626_132_982);
  t.is(new AclIds().idOf('default:web:tcp:80:v4', 1), 1_366_074_118);
});

test('AclIds gives a line the same id again', (t) => {
  const ids = new AclIds();
  t.is(ids.idOf('a', 0), ids.idOf('a', 0));
});

test('Ids are above those that HAProxy assigns, and within its limit', (t) => {
  const ids = new AclIds();
  const property = fc.property(fc.string(), fc.nat(100), (listener, line) => {
    const id = ids.idOf(listener, line);
    return id >= 100_000 && id <= 2 ** 31 - 1;
  });
  t.notThrows(() => fc.assert(property));
});

test('If two hashes are equal, the later line gets the next id', (t) => {
  const ids = new AclIds(() => 500_000);
  t.deepEqual([ids.idOf('a', 0), ids.idOf('a', 1), ids.idOf('b', 0)], [500_000, 500_001, 500_002]);
  t.is(ids.idOf('a', 1), 500_001);
});

test('The next id after the largest is the first', (t) => {
  const ids = new AclIds(() => 2 ** 31 - 1);
  t.deepEqual([ids.idOf('a', 0), ids.idOf('b', 0)], [2 ** 31 - 1, 1]);
});

test('No two lines have the same id, even if many hashes are equal', (t) => {
  const ids = new AclIds((text) => 100_000 + (text.length % 3));
  const given = Array.from({ length: 300 }, (_, at) => ids.idOf(`listener-${at}`, at % 4));
  t.is(new Set(given).size, 300);
});

test('release() frees the ids of all lines of a listener', (t) => {
  const ids = new AclIds(() => 500_000);
  ids.idOf('a', 0);
  ids.idOf('a', 1);
  ids.idOf('b', 0);
  ids.release('a');
  t.is(ids.idOf('b', 0), 500_002);
  t.deepEqual([ids.idOf('c', 0), ids.idOf('c', 1)], [500_000, 500_001]);
});

test('release() accepts a listener without ids', (t) => {
  const ids = new AclIds(() => 500_000);
  ids.release('a');
  t.is(ids.idOf('a', 0), 500_000);
});
