import test from 'ava';
import { patchedTables, type RowTables } from '../../../../agent/haproxy/routes/patched-tables.ts';

const row = (value: string) => [{ map: 'hosts', key: 'a.org|L', value }] as const;

test('Row tables that are patched one after the other are as tables that are copied', (t) => {
  let copied = new Map(Array.from({ length: 200 }, (_, at) => [`t${at}`, row('first')]));
  let patched: RowTables = copied;
  for (let at = 0; at < 300; at++) {
    const change = new Map([[`t${(at * 7) % 150}`, row(`${at}`)]]);
    copied = new Map([...copied, ...change]);
    const before = [...patched];
    const after = patchedTables(patched, change);
    t.deepEqual([...patched], before, 'The tables before stay as they were');
    patched = after;
  }
  t.deepEqual([...patched], [...copied]);
  t.deepEqual([...patched.keys()], [...copied.keys()]);
  t.deepEqual([...patched.values()], [...copied.values()]);
  t.is(patched.size, 200);
  t.true(patched.has('t199'));
  t.false(patched.has('t200'));
  t.deepEqual(patched.get('t0'), copied.get('t0'));
  t.is(patched.get('t200'), undefined);
});

test('A patch of tables reads none of the tables that it does not name', (t) => {
  const tables = new Map(Array.from({ length: 200 }, (_, at) => [`t${at}`, row('first')]));
  let reads = 0;
  const counting: RowTables = {
    size: 200,
    has: (name) => tables.has(name),
    get: (name) => tables.get(name),
    keys: () => tables.keys(),
    values: () => tables.values(),
    [Symbol.iterator]: () => {
      reads++;
      return tables[Symbol.iterator]();
    },
  };
  const patched = patchedTables(
    patchedTables(counting, new Map([['t1', row('a')]])),
    new Map([['t2', row('b')]]),
  );
  t.is(patched.get('t1')?.[0]?.value, 'a');
  t.is(patched.get('t2')?.[0]?.value, 'b');
  t.is(reads, 0);
});
