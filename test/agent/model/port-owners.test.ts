import { ok, strictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { PortOwners, type PortRequest } from '../../../agent/model/port-owners.ts';

const at = (port: number, address = '192.0.2.1', rank = 1): PortRequest => ({
  address,
  protocol: 'TCP',
  port,
  rank,
});

test('The oldest Service holds an address, protocol and port, in whatever order they come', (t) => {
  const owners = new PortOwners();
  t.deepEqual([...owners.update('default/young', 2, [at(80)])], []);
  t.deepEqual([...owners.update('default/old', 1, [at(80)])], ['default/young']);
  t.is(owners.ownerOf(at(80)), 'default/old');
});

test('Of two Services of one age the first by name holds', (t) => {
  const owners = new PortOwners();
  owners.update('default/b', 1, [at(80)]);
  owners.update('default/a', 1, [at(80)]);
  t.is(owners.ownerOf(at(80)), 'default/a');
});

test('A Service of unknown age gives way to one whose age is known', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', Number.POSITIVE_INFINITY, [at(80)]);
  owners.update('default/b', 5, [at(80)]);
  t.is(owners.ownerOf(at(80)), 'default/b');
});

test('A lower rank comes before a greater age, place by place', (t) => {
  const owners = new PortOwners();
  owners.update('default/old', 1, [at(80), at(81)]);
  t.deepEqual([...owners.update('default/young', 2, [at(80, '192.0.2.1', 0), at(81)])], ['default/old']);
  t.is(owners.ownerOf(at(80)), 'default/young');
  t.is(owners.ownerOf(at(81)), 'default/old');
  t.deepEqual([...owners.update('default/young', 2, [at(80), at(81)])], ['default/old']);
  t.is(owners.ownerOf(at(80)), 'default/old');
});

test('Different ports, protocols or addresses do not meet', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', 1, [at(80)]);
  owners.update('default/b', 2, [at(81), { ...at(80), protocol: 'UDP' }, at(80, '192.0.2.2')]);
  t.is(owners.ownerOf(at(80)), 'default/a');
  t.is(owners.ownerOf(at(81)), 'default/b');
  t.is(owners.ownerOf({ ...at(80), protocol: 'UDP' }), 'default/b');
  t.is(owners.ownerOf(at(80, '192.0.2.2')), 'default/b');
});

test('When the holder goes the next takes over, and all that wait are told', (t) => {
  const owners = new PortOwners();
  for (const [created, key] of ['default/a', 'default/b', 'default/c'].entries())
    owners.update(key, created, [at(80)]);
  t.deepEqual([...owners.update('default/a', 0, [])], ['default/b', 'default/c']);
  t.is(owners.ownerOf(at(80)), 'default/b');
});

test('What a second in line does concerns nobody else', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', 1, [at(80)]);
  t.deepEqual([...owners.update('default/b', 2, [at(80)])], []);
  t.deepEqual([...owners.update('default/b', 2, [])], []);
});

test('A Service that is created anew goes to the end of the line', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', 1, [at(80)]);
  owners.update('default/b', 2, [at(80)]);
  t.deepEqual([...owners.update('default/a', 3, [at(80)])], ['default/b']);
  t.is(owners.ownerOf(at(80)), 'default/b');
});

test('Whatever the order of updates, holders are those of the final owners, and everyone concerned is told', (t) => {
  const update = fc.record({
    key: fc.constantFrom('default/a', 'default/b', 'default/c', 'default/d'),
    created: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
    rank: fc.constantFrom(0, 1),
    ports: fc.uniqueArray(fc.constantFrom<number>(1, 2, 3)),
  });
  const property = fc.property(fc.array(update, { maxLength: 20 }), (updates) => {
    const owners = new PortOwners();
    const last = new Map<string, (typeof updates)[number]>();
    const holders = (key: string) =>
      (last.get(key)?.ports ?? []).map((port) => owners.ownerOf(at(port)) ?? '').join();
    for (const each of updates) {
      const before = new Map([...last.keys()].map((key) => [key, holders(key)]));
      const places = each.ports.map((port) => at(port, '192.0.2.1', each.rank));
      const told = owners.update(each.key, each.created, places);
      last.set(each.key, each);
      for (const [key, then] of before)
        ok(key === each.key || holders(key) === then || told.has(key), `${key} is not told`);
    }
    for (const port of [1, 2, 3]) {
      const [first] = [...last.values()].filter(({ ports }) => ports.includes(port)).sort(bySeniority);
      strictEqual(owners.ownerOf(at(port)), first?.key);
    }
  });
  t.notThrows(() => fc.assert(property, { numRuns: 300 }));
});

interface Aged {
  readonly key: string;
  readonly created: number;
  readonly rank: number;
}

function bySeniority(a: Aged, b: Aged): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.created === b.created) return a.key < b.key ? -1 : 1;
  return a.created < b.created ? -1 : 1;
}
