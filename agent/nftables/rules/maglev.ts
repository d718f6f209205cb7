// Chooses the member of each slot of a listener: a table that depends on the members alone, so that both hosts of a pair have
// the same, and of which few slots move when a member comes or goes. Pure.
// Source: D. Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, 3.4; weights as in Katran.

import { hash } from 'node:crypto';
import type { Member } from '../../model/load-balancer.ts';

/** Numbers of slots; primes, so that every step through a table reaches each slot. */
export const TABLE_SIZES = [61, 127, 251, 509, 1_021, 2_039, 4_093] as const;
/** A member of the least weight has about so many slots at least, so that the others have at most a tenth more than their share. */
const SLOTS_PER_TURN = 10;

/** `members` must not be empty, and their weights not 0. The same members in any order give the same table. */
export function slotsOf(members: readonly Member[]): readonly Member[] {
  const size = sizeFor(members);
  const heaviest = members.reduce((most, { weight }) => Math.max(most, weight), 0);
  const walks = [...members]
    .sort(byName)
    .map((member) => ({ ...walkOf(member.name, size), member, credit: 0 }));
  const slots = new Array<Member | undefined>(size).fill(undefined);
  for (let filled = 0; ; ) {
    for (const walk of walks) {
      walk.credit += walk.member.weight / heaviest;
      if (walk.credit < 1) continue;
      walk.credit -= 1;
      while (slots[walk.at] !== undefined) walk.at = (walk.at + walk.step) % size;
      slots[walk.at] = walk.member;
      if (++filled === size) return slots as readonly Member[];
    }
  }
}

/** By the number of members of the least weight that would have the same sum of weights. */
function sizeFor(members: readonly Member[]): number {
  const weights = members.map(({ weight }) => weight);
  const least = weights.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const turns = weights.reduce((a, b) => a + b, 0) / least;
  return (
    TABLE_SIZES.find((size) => size >= turns * SLOTS_PER_TURN) ?? TABLE_SIZES[TABLE_SIZES.length - 1] ?? 0
  );
}

/** The order in which a member asks for slots. */
function walkOf(name: string, size: number): { at: number; readonly step: number } {
  const digest = hash('sha256', name, 'buffer');
  return { at: digest.readUInt32BE(0) % size, step: 1 + (digest.readUInt32BE(4) % (size - 1)) };
}

function byName(a: Member, b: Member): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
