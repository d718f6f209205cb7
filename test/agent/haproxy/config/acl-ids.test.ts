import test from 'ava';
import fc from 'fast-check';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';

test('An id is the same on every host and after every restart: these are written in configurations', (t) => {
  t.is(new AclIds().idOf('default:web:tcp:80:v4', 0), 626_132_982);
  t.is(new AclIds().idOf('default:web:tcp:80:v4', 1), 1_366_074_118);
});

test('Asked again, the id is the same', (t) => {
  const ids = new AclIds();
  t.is(ids.idOf('a', 0), ids.idOf('a', 0));
});

test('Ids are above those that HAProxy gives by itself, and within what it takes', (t) => {
  const ids = new AclIds();
  const property = fc.property(fc.string(), fc.nat(100), (listener, line) => {
    const id = ids.idOf(listener, line);
    return id >= 100_000 && id <= 2 ** 31 - 1;
  });
  t.notThrows(() => fc.assert(property));
});

test('Where two hashes meet the later one moves on', (t) => {
  const ids = new AclIds(() => 500_000);
  t.deepEqual([ids.idOf('a', 0), ids.idOf('a', 1), ids.idOf('b', 0)], [500_000, 500_001, 500_002]);
  t.is(ids.idOf('a', 1), 500_001);
});

test('Moving on goes round at the largest number', (t) => {
  const ids = new AclIds(() => 2 ** 31 - 1);
  t.deepEqual([ids.idOf('a', 0), ids.idOf('b', 0)], [2 ** 31 - 1, 1]);
});

test('However many hashes meet, no two lines have one id', (t) => {
  const ids = new AclIds((text) => 100_000 + (text.length % 3));
  const given = Array.from({ length: 300 }, (_, at) => ids.idOf(`listener-${at}`, at % 4));
  t.is(new Set(given).size, 300);
});

test('The ids of a listener that is released are free for others, all of its lines', (t) => {
  const ids = new AclIds(() => 500_000);
  ids.idOf('a', 0);
  ids.idOf('a', 1);
  ids.idOf('b', 0);
  ids.release('a');
  t.is(ids.idOf('b', 0), 500_002);
  t.deepEqual([ids.idOf('c', 0), ids.idOf('c', 1)], [500_000, 500_001]);
});

test('Releasing a listener that has none is nothing', (t) => {
  const ids = new AclIds(() => 500_000);
  ids.release('a');
  t.is(ids.idOf('a', 0), 500_000);
});
