// Session affinity with its timeout, of IPv4: the kernel remembers the member of each client in a map from the client to the
// member's number (templates/nftables/affinity.mustache). In IPv6 the key is longer than nft 1.0.6 can update in a map. Pure.
// Why: docs/design/decisions/0040-kernel-affinity.md

import { memoByIdentity } from '../../base/memo.ts';
import type { Member } from '../../model/load-balancer.ts';

/** Timeouts for which there is a rule each; others are rounded up. 10,800 is Kubernetes' default, 86,400 the most. */
export const AFFINITY_SECONDS = [
  1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 420, 600, 900,
  1_200, 1_800, 2_700, 3_600, 5_400, 7_200, 10_800, 14_400, 21_600, 28_800, 43_200, 57_600, 86_400,
] as const;

/** Clients, of all Services together: some 100 bytes each. */
export const MAX_CLIENTS = 262_144;

/** Numbers of members are in marks, where those below are slots. */
const FIRST_NUMBER = 0x1000;
const NUMBERS = 0x3000;
/** Added to a number while it is that of a member chosen by the hash. */
export const CHOSEN = 0x4000;

/** The timeout of a rule for this many seconds. */
export function affinitySeconds(seconds: number): number {
  return AFFINITY_SECONDS.find((each) => each >= seconds) ?? 86_400;
}

/**
 * The members of the slots by their numbers. A member has the same number whatever other members there are, unless another
 * one has it already. The table has fewer slots than there are numbers.
 */
export const membersByNumber = memoByIdentity((slots: readonly Member[]): ReadonlyMap<number, Member> => {
  const members = new Map<number, Member>();
  for (const member of [...new Set(slots)].sort((a, b) => a.id - b.id)) {
    let number = member.id % NUMBERS;
    while (members.has(FIRST_NUMBER + number)) number = (number + 1) % NUMBERS;
    members.set(FIRST_NUMBER + number, member);
  }
  return members;
});

/** The number of the member of each slot. */
export const numbersOfSlots = memoByIdentity((slots: readonly Member[]): readonly number[] => {
  const numbers = new Map(Array.from(membersByNumber(slots), ([number, member]) => [member, number]));
  return slots.map((member) => numbers.get(member) ?? 0);
});
