// Sets of addresses of one family as ranges that do not touch one another, from the lowest to the highest: what lists of CIDRs
// let in together, and whether that is all addresses or none. Pure.

import type { Family } from '../model/load-balancer.ts';
import { familyOf } from './ip.ts';
import { type AddressRange, addressNumber, addressText, cidrRange } from './ip-range.ts';

export type AddressSet = readonly Pick<AddressRange, 'first' | 'last'>[];

const LAST = { v4: 2n ** 32n - 1n, v6: 2n ** 128n - 1n } as const;

export function allAddresses(family: Family): AddressSet {
  return [{ first: 0n, last: LAST[family] }];
}

/** The addresses of the CIDRs that are of the family. */
export function addressesOf(cidrs: readonly string[], family: Family): AddressSet {
  return union(
    cidrs.flatMap((cidr) => {
      const range = familyOf(cidr) === family ? cidrRange(cidr) : undefined;
      return range === undefined ? [] : [range];
    }),
  );
}

/** All addresses of the ranges, which may touch one another, in any order. */
export function union(ranges: readonly AddressSet[number][]): AddressSet {
  const joined: { first: bigint; last: bigint }[] = [];
  for (const { first, last } of ranges.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = joined.at(-1);
    if (before === undefined || first > before.last + 1n) joined.push({ first, last });
    else if (last > before.last) before.last = last;
  }
  return joined;
}

/** The addresses that both have. */
export function common(a: AddressSet, b: AddressSet): AddressSet {
  const found: { first: bigint; last: bigint }[] = [];
  for (let [at, of] = [0, 0]; ; ) {
    const [x, y] = [a[at], b[of]];
    if (x === undefined || y === undefined) return found;
    // biome-ignore lint/complexity/useMathMinMax: Math.max() takes no bigint.
    const first = x.first > y.first ? x.first : y.first;
    // biome-ignore lint/complexity/useMathMinMax: Math.min() takes no bigint.
    const last = x.last < y.last ? x.last : y.last;
    if (first <= last) found.push({ first, last });
    if (x.last < y.last) at++;
    else of++;
  }
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

/** The fewest CIDRs that have exactly the set, sorted; undefined if these are more than `most`. */
export function cidrsOf(set: AddressSet, family: Family, most: number): readonly string[] | undefined {
  const bits = family === 'v4' ? 32n : 128n;
  const cidrs: string[] = [];
  for (const { first, last } of set)
    for (let at = first; at <= last; ) {
      let size = 0n;
      // A block begins at a multiple of its size.
      while (size < bits && at % (2n << size) === 0n && at + (2n << size) - 1n <= last) size++;
      if (cidrs.length === most) return undefined;
      cidrs.push(`${addressText(at, family)}/${bits - size}`);
      at += 1n << size;
    }
  return cidrs.sort();
}

export function hasAll(set: AddressSet, family: Family): boolean {
  return others(set, family).length === 0;
}

/** `address`: canonical, of the family of the set. */
export function hasAddress(set: AddressSet, address: string): boolean {
  const number = addressNumber(address);
  return set.some(({ first, last }) => first <= number && number <= last);
}
