import { ok, strictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { PortOwners, type PortRequest } from '../../../agent/model/port-owners.ts';

const at = (port: number, address = '192.0.2.1', rank = 1, overrules = false): PortRequest => ({
  address,
  protocol: 'TCP',
  port,
  rank,
  overrules,
});

test('The oldest owner has an address, protocol and port, in any order of updates', (t) => {
  const owners = new PortOwners();
  t.deepEqual([...owners.update('default/young', 2, [at(80)])], []);
  t.deepEqual([...owners.update('default/old', 1, [at(80)])], ['default/young']);
  t.is(owners.ownerOf(at(80)), 'default/old');
});

test('The first by name of two owners of the same age has the port', (t) => {
  const owners = new PortOwners();
  owners.update('default/b', 1, [at(80)]);
  owners.update('default/a', 1, [at(80)]);
  t.is(owners.ownerOf(at(80)), 'default/a');
});

test('An owner of known age has precedence over one of unknown age', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', Number.POSITIVE_INFINITY, [at(80)]);
  owners.update('default/b', 5, [at(80)]);
  t.is(owners.ownerOf(at(80)), 'default/b');
});

test('A lower rank has precedence over a greater age, for each port', (t) => {
  const owners = new PortOwners();
  owners.update('default/old', 1, [at(80), at(81)]);
  t.deepEqual([...owners.update('default/young', 2, [at(80, '192.0.2.1', 0), at(81)])], ['default/old']);
  t.is(owners.ownerOf(at(80)), 'default/young');
  t.is(owners.ownerOf(at(81)), 'default/old');
  t.deepEqual([...owners.update('default/young', 2, [at(80), at(81)])], ['default/old']);
  t.is(owners.ownerOf(at(80)), 'default/old');
});

test('Different ports, protocols or addresses do not conflict', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', 1, [at(80)]);
  owners.update('default/b', 2, [at(81), { ...at(80), protocol: 'UDP' }, at(80, '192.0.2.2')]);
  t.is(owners.ownerOf(at(80)), 'default/a');
  t.is(owners.ownerOf(at(81)), 'default/b');
  t.is(owners.ownerOf({ ...at(80), protocol: 'UDP' }), 'default/b');
  t.is(owners.ownerOf(at(80, '192.0.2.2')), 'default/b');
});

test('If the owner of a port is removed, the next takes over, and all that wait are affected', (t) => {
  const owners = new PortOwners();
  for (const [created, key] of ['default/a', 'default/b', 'default/c'].entries())
    owners.update(key, created, [at(80)]);
  t.deepEqual([...owners.update('default/a', 0, [])], ['default/b', 'default/c']);
  t.is(owners.ownerOf(at(80)), 'default/b');
});

test('A change of a waiting owner affects no other owner', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', 1, [at(80)]);
  t.deepEqual([...owners.update('default/b', 2, [at(80)])], []);
  t.deepEqual([...owners.update('default/b', 2, [])], []);
});

test('An owner that is created again is the youngest', (t) => {
  const owners = new PortOwners();
  owners.update('default/a', 1, [at(80)]);
  owners.update('default/b', 2, [at(80)]);
  t.deepEqual([...owners.update('default/a', 3, [at(80)])], ['default/b']);
  t.is(owners.ownerOf(at(80)), 'default/b');
});

test('An owner keeps its port against one that is older, lower in rank, or first by name', (t) => {
  const owners = new PortOwners();
  owners.update('default/web', Number.POSITIVE_INFINITY, [at(80)]);
  owners.settle();
  t.deepEqual([...owners.update('default/taken', 1, [at(80, '192.0.2.1', 0)])], []);
  owners.settle();
  t.is(owners.ownerOf(at(80)), 'default/web');
  t.deepEqual([...owners.update('default/web', Number.POSITIVE_INFINITY, [])], ['default/taken']);
  t.is(owners.ownerOf(at(80)), 'default/taken');
});

test('An owner that overrules takes a port from one that does not', (t) => {
  const owners = new PortOwners();
  owners.update('default/web', 1, [at(80)]);
  owners.settle();
  owners.update('default/api', 2, [at(80, '192.0.2.1', 1, true)]);
  t.is(owners.ownerOf(at(80)), 'default/api');
});

test('The owner that had a port before a restart has it again, whichever is updated first', (t) => {
  for (const keys of [
    ['default/a', 'default/web'],
    ['default/web', 'default/a'],
  ]) {
    const owners = new PortOwners();
    owners.remember('default/web', at(80));
    for (const key of keys) owners.update(key, Number.POSITIVE_INFINITY, [at(80)]);
    owners.settle();
    t.is(owners.ownerOf(at(80)), 'default/web');
  }
});

test('For any order of updates the owners of ports are right, and every affected owner is returned', (t) => {
  const update = fc.record({
    key: fc.constantFrom('default/a', 'default/b', 'default/c', 'default/d'),
    created: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
    rank: fc.constantFrom(0, 1),
    overrules: fc.boolean(),
    settles: fc.boolean(),
    ports: fc.uniqueArray(fc.constantFrom<number>(1, 2, 3)),
  });
  const property = fc.property(fc.array(update, { maxLength: 20 }), (updates) => {
    const owners = new PortOwners();
    const last = new Map<string, (typeof updates)[number]>();
    const had = new Map<number, string>();
    const holders = (key: string) =>
      (last.get(key)?.ports ?? []).map((port) => owners.ownerOf(at(port)) ?? '').join();
    for (const each of updates) {
      const before = new Map([...last.keys()].map((key) => [key, holders(key)]));
      const places = each.ports.map((port) => at(port, '192.0.2.1', each.rank, each.overrules));
      const earlier = last.get(each.key);
      for (const [port, holder] of had)
        if (holder === each.key && (earlier?.created !== each.created || !each.ports.includes(port)))
          had.delete(port);
      const told = owners.update(each.key, each.created, places);
      last.set(each.key, each);
      for (const [key, then] of before)
        ok(key === each.key || holders(key) === then || told.has(key), `${key} is not told`);
      const firsts = [1, 2, 3].map((port) => {
        const requesters = [...last.values()].filter(({ ports }) => ports.includes(port));
        return [port, requesters.sort(byPrecedence(had.get(port)))[0]?.key ?? ''] as const;
      });
      for (const [port, first] of firsts) strictEqual(owners.ownerOf(at(port)) ?? '', first);
      if (!each.settles) continue;
      owners.settle();
      for (const [port, first] of firsts) had.set(port, first);
    }
  });
  t.notThrows(() => fc.assert(property, { numRuns: 300 }));
});

interface Aged {
  readonly key: string;
  readonly created: number;
  readonly rank: number;
  readonly overrules: boolean;
}

function byPrecedence(holder: string | undefined): (a: Aged, b: Aged) => number {
  return (a, b) => {
    if (a.overrules !== b.overrules) return a.overrules ? -1 : 1;
    if (a.key === holder || b.key === holder) return a.key === holder ? -1 : 1;
    if (a.rank !== b.rank) return a.rank - b.rank;
    if (a.created === b.created) return a.key < b.key ? -1 : 1;
    return a.created < b.created ? -1 : 1;
  };
}
