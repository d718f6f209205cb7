// Sets of addresses of one family as ranges that do not touch one another, from the lowest to the highest: what lists of CIDRs
// let in together, and whether that is all addresses or none. Pure.

import type { Family } from '../model/load-balancer.ts';
import { familyOf } from './ip.ts';
import { type AddressRange, addressNumber, cidrRange } from './ip-range.ts';

export type AddressSet = readonly Pick<AddressRange, 'first' | 'last'>[];

const LAST = { v4: 2n ** 32n - 1n, v6: 2n ** 128n - 1n } as const;

export function allAddresses(family: Family): AddressSet {
  return [{ first: 0n, last: LAST[family] }];
}

/** The addresses of the CIDRs that are of the family. */
export function addressesOf(cidrs: readonly string[], family: Family): AddressSet {
  const ranges = cidrs.flatMap((cidr) => {
    const range = familyOf(cidr) === family ? cidrRange(cidr) : undefined;
    return range === undefined ? [] : [range];
  });
  const joined: { first: bigint; last: bigint }[] = [];
  for (const { first, last } of ranges.sort((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = joined.at(-1);
    if (before === undefined || first > before.last + 1n) joined.push({ first, last });
    else if (last > before.last) before.last = last;
  }
  return joined;
}

/** The addresses that both have. */
export function common(a: AddressSet, b: AddressSet): AddressSet {
  return a.flatMap((x) =>
    b.flatMap((y) => {
      // biome-ignore lint/complexity/useMathMinMax: Math.max() takes no bigint.
      const first = x.first > y.first ? x.first : y.first;
      // biome-ignore lint/complexity/useMathMinMax: Math.min() takes no bigint.
      const last = x.last < y.last ? x.last : y.last;
      return first > last ? [] : [{ first, last }];
    }),
  );
}

/** The addresses that are not in the set. */
export function others(set: AddressSet, family: Family): AddressSet {
  const gaps: { first: bigint; last: bigint }[] = [];
  let next = 0n;
  for (const { first, last } of set) {
    if (first > next) gaps.push({ first: next, last: first - 1n });
    next = last + 1n;
  }
  if (next <= LAST[family]) gaps.push({ first: next, last: LAST[family] });
  return gaps;
}

export function hasAll(set: AddressSet, family: Family): boolean {
  return others(set, family).length === 0;
}

/** `address`: canonical, of the family of the set. */
export function hasAddress(set: AddressSet, address: string): boolean {
  const number = addressNumber(address);
  return set.some(({ first, last }) => first <= number && number <= last);
}
