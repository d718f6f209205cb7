// Addresses as numbers, and ranges of addresses as their first and last one, so that a /64 is as small as one address. Pure.

import type { Family } from '../model/load-balancer.ts';
import { familyOf, parseAddress, parseCidr } from './ip.ts';

/** All addresses from `first` to `last`, both included. */
export interface AddressRange {
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

/** `address`: canonical text. */
export function addressNumber(address: string): bigint {
  if (familyOf(address) === 'v4') {
    return BigInt(address.split('.').reduce((number, part) => number * 256 + Number(part), 0));
  }
  return BigInt(`0x${expandV6(address).join('')}`);
}

/** The canonical address of a number within the family. */
export function addressText(number: bigint, family: Family): string {
  if (family === 'v4') {
    const value = Number(number);
    return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
  }
  const groups = number.toString(16).padStart(32, '0').match(/.{4}/g) ?? [];
  const text = groups.join(':');
  return parseAddress(text)?.address ?? text;
}

/** The eight groups of a canonical IPv6 address, four digits each. */
export function expandV6(address: string): readonly string[] {
  const [head = '', tail] = address.split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].map((group) => group.padStart(4, '0'));
}

/**
 * Reads `192.0.2.0/24` (`isCidr`), `192.0.2.10-192.0.2.20` or a single address. undefined for all other texts, and for
 * a CIDR with host bits set, which is ambiguous.
 */
export function parseBlock(
  text: string,
): { readonly range: AddressRange; readonly isCidr: boolean } | undefined {
  if (text.length > 100) return undefined;
  if (text.includes('/')) {
    const range = cidrRange(text);
    return range && { range, isCidr: true };
  }
  const ends = text.split('-').map((part) => parseAddress(part.trim()));
  const [from, to] = ends.length === 1 ? [ends[0], ends[0]] : ends;
  if (from === undefined || to === undefined || ends.length > 2 || from.family !== to.family)
    return undefined;
  const first = addressNumber(from.address);
  const last = addressNumber(to.address);
  if (first > last) return undefined;
  return { range: { family: from.family, first, last }, isCidr: false };
}

/** A range or a single address, as parseBlock() reads it. */
export function rangeText({ family, first, last }: AddressRange): string {
  const text = addressText(first, family);
  return first === last ? text : `${text}-${addressText(last, family)}`;
}

/** undefined unless the text is a canonical CIDR. */
export function cidrRange(text: string): AddressRange | undefined {
  const cidr = parseCidr(text);
  const written = parseAddress(text.slice(0, text.indexOf('/')));
  const [network = '', digits] = cidr?.cidr.split('/') ?? [];
  if (cidr === undefined || written?.address !== network) return undefined;
  const first = addressNumber(network);
  const size = 1n << BigInt((cidr.family === 'v4' ? 32 : 128) - Number(digits));
  return { family: cidr.family, first, last: first + size - 1n };
}
