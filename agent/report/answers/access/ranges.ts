// What lists of allowed and denied addresses do with a client. Pure.

import {
  type AddressSet,
  addressesOf,
  allAddresses,
  common,
  hasAddress,
  hasAll,
  others,
} from '../../../base/address-set.ts';
import type { Family } from '../../../model/load-balancer.ts';
import { asked, type CheckResult, passed, refused } from './check.ts';
import type { Client } from './client.ts';

export interface Ranges {
  /** Canonical CIDRs; undefined: all addresses. */
  readonly allowed: readonly string[] | undefined;
  readonly denied: readonly string[];
}

/** The result for clients of one family. `answer`: what the others get. */
export function rangesResult(ranges: Ranges, family: Family, { from }: Client, answer: string): CheckResult {
  const set = admittedBy(ranges, family);
  if (hasAll(set, family)) return passed('all addresses');
  if (set.length === 0) return refused('no address', answer);
  const words = rangesInWords(ranges);
  if (from === undefined) return asked(words, answer);
  const isIn = from.family === family && hasAddress(set, from.address);
  return isIn ? passed(words) : refused(words, answer);
}

export function admittedBy({ allowed, denied }: Ranges, family: Family): AddressSet {
  const all = allowed === undefined ? allAddresses(family) : addressesOf(allowed, family);
  return common(all, others(addressesOf(denied, family), family));
}

/** `from 192.0.2.0/24, not from 192.0.2.7/32`. */
export function rangesInWords({ allowed = [], denied }: Ranges): string {
  const words: string[] = [];
  if (allowed.length > 0) words.push(`from ${firstOf(allowed)}`);
  if (denied.length > 0) words.push(`not from ${firstOf(denied)}`);
  return words.join(', ');
}

const MOST_SHOWN = 5;

function firstOf(cidrs: readonly string[]): string {
  const more = cidrs.length - MOST_SHOWN;
  return `${cidrs.slice(0, MOST_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
