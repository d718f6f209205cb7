import test from 'ava';
import type { Member } from '../../../../agent/model/load-balancer.ts';
import { slotsOf, TABLE_SIZES } from '../../../../agent/nftables/rules/maglev.ts';

function member(number: number, weight = 128): Member {
  const address = `10.0.${number >> 8}.${number & 255}`;
  return { name: `${address}:53`, id: number + 1, address, port: 53, weight, state: 'ready', target: '' };
}

const members = (count: number): readonly Member[] => Array.from({ length: count }, (_, at) => member(at));

function shares(slots: readonly Member[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { name } of slots) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

test('slotsOf() gives equal members nearly equal shares of a table that fits their number', (t) => {
  for (const [count, size] of [
    [1, 61],
    [6, 61],
    [7, 127],
    [12, 127],
    [13, 251],
    [25, 251],
    [50, 509],
    [100, 1_021],
    [200, 2_039],
    [400, 4_093],
  ] as const) {
    const slots = slotsOf(members(count));
    t.is(slots.length, size);
    const counts = [...shares(slots).values()];
    t.is(counts.length, count);
    t.true(Math.max(...counts) - Math.min(...counts) <= 1, `${count}: ${counts}`);
  }
});

test('slotsOf() gives the same table for the same members in any order', (t) => {
  const some = members(20);
  t.deepEqual(slotsOf([...some].reverse()), slotsOf(some));
});

test('slotsOf() moves few slots more than those of a member that goes', (t) => {
  const some = members(10);
  const before = slotsOf(some);
  const after = slotsOf(some.slice(1));
  const gone = some[0]?.name;
  const moved = before.filter((was, at) => was.name !== after[at]?.name);
  t.is(moved.filter(({ name }) => name === gone).length, shares(before).get(gone ?? '') ?? 0);
  t.true(moved.length < before.length / 4, `${moved.length} of ${before.length}`);
});

test('slotsOf() gives shares by weight', (t) => {
  const counts = shares(slotsOf([member(1, 100), member(2, 200), member(3, 100)]));
  const [one = 0, two = 0, three = 0] = [1, 2, 3].map((number) => counts.get(member(number).name));
  t.true(Math.abs(two - 2 * one) <= 2 && Math.abs(one - three) <= 1, `${one} ${two} ${three}`);
});

test('slotsOf() of more members than slots, and of very different weights, ends', (t) => {
  t.is(slotsOf(members(5_000)).length, TABLE_SIZES.at(-1) ?? 0);
  t.is(slotsOf([member(1, 1), member(2, 256)]).length, 4_093);
});
