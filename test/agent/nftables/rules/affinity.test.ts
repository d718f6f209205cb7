import test from 'ava';
import {
  AFFINITY_SECONDS,
  affinitySeconds,
  CHOSEN,
  membersByNumber,
  numbersOfSlots,
} from '../../../../agent/nftables/rules/affinity.ts';
import { slotsOf, TABLE_SIZES } from '../../../../agent/nftables/rules/maglev.ts';
import { namedMembers } from '../../../../agent/translate/service/members.ts';

function members(count: number) {
  const addresses = Array.from({ length: count }, (_, at) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`);
  return namedMembers(
    addresses.map((address) => ({ address, port: 53, weight: 16, state: 'ready' as const, target: '' })),
  );
}

test('A timeout without a rule of its own is rounded up to the next one', (t) => {
  t.is(affinitySeconds(10_800), 10_800);
  t.is(affinitySeconds(86_400), 86_400);
  t.is(affinitySeconds(1), 1);
  t.is(affinitySeconds(7), 8);
  t.is(affinitySeconds(601), 900);
  for (let seconds = 1; seconds <= 86_400; seconds++) {
    const rounded = affinitySeconds(seconds);
    if (rounded < seconds || rounded > 1.5 * seconds + 1) t.fail(`${seconds} becomes ${rounded}`);
  }
  t.deepEqual(
    [...AFFINITY_SECONDS],
    [...AFFINITY_SECONDS].sort((a, b) => a - b),
  );
});

test('Members have different numbers, apart from those of slots and of members that the hash chose', (t) => {
  const slots = slotsOf(members(2_000));
  const numbers = [...membersByNumber(slots).keys()];
  t.is(new Set(numbers).size, new Set(slots).size);
  t.true(numbers.every((number) => number > Math.max(...TABLE_SIZES) && number < CHOSEN));
  const byNumber = membersByNumber(slots);
  t.true(numbersOfSlots(slots).every((number, slot) => byNumber.get(number) === slots[slot]));
});

test('A member keeps its number while others come and go', (t) => {
  const all = members(50);
  const numbers = (some: typeof all) =>
    new Map(Array.from(membersByNumber(slotsOf(some)), ([number, { name }]) => [name, number]));
  const [before, after] = [numbers(all), numbers(all.slice(20))];
  for (const [name, number] of after) t.is(number, before.get(name) ?? 0);
});
