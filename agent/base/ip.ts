// Parses addresses and CIDRs to canonical text (RFC 5952 for IPv6), so that equal addresses are equal strings.
// The only file that imports ipaddr.js. Pure.

import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Family } from '../model/load-balancer.ts';

/** The longest IPv6 text. */
const MAX_CHARACTERS = 45;

/**
 * undefined unless the text is exactly one address: no blanks, no zone (`%eth0`), no leading zeros in IPv4.
 * Refuses IPv6 that embeds IPv4 (mapped `::ffff:192.0.2.1`, deprecated compatible `::192.0.2.1`), because it is a second
 * spelling of an IPv4 address.
 */
export function parseAddress(
  text: string,
): { readonly address: string; readonly family: Family } | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  if (isIPv4(text)) return { address: text, family: 'v4' };
  const parsed = parseV6(text);
  return parsed === undefined ? undefined : { address: parsed.toString(), family: 'v6' };
}

/** Reads `address/prefix` and sets the host bits to zero; undefined for all other texts, such as a bare address. */
export function parseCidr(text: string): { readonly cidr: string; readonly family: Family } | undefined {
  const slash = text.indexOf('/');
  const address = slash < 0 ? undefined : parseAddress(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (address === undefined || !/^(0|[1-9]\d{0,2})$/.test(digits)) return undefined;
  const { family } = address;
  if (Number(digits) > (family === 'v4' ? 32 : 128)) return undefined;
  const space = family === 'v4' ? ipaddr.IPv4 : ipaddr.IPv6;
  return { cidr: `${space.networkAddressFromCIDR(`${address.address}/${digits}`)}/${digits}`, family };
}

/** As parseCidr(); an address alone is a CIDR of its own. */
export function parseCidrOrAddress(text: string): ReturnType<typeof parseCidr> {
  return parseCidr(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
}

/** 4 or 16. `address`: canonical. */
export function addressBytes(address: string): Buffer {
  return Buffer.from(ipaddr.parse(address).toByteArray());
}

/** `address`: canonical address or CIDR. */
export function familyOf(address: string): Family {
  return address.includes(':') ? 'v6' : 'v4';
}

function parseV6(text: string): ipaddr.IPv6 | undefined {
  // isIPv6() first, because ipaddr.js accepts more, such as octal parts.
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const parsed = ipaddr.IPv6.parse(text);
  return embedsV4(parsed) ? undefined : parsed;
}

/** RFC 4291, 2.5.5. Addresses from `::` to `::ffff` are ordinary ones. */
function embedsV4({ parts }: ipaddr.IPv6): boolean {
  if (parts.slice(0, 5).some((part) => part !== 0)) return false;
  return parts[5] === 0xffff || (parts[5] === 0 && parts[6] !== 0);
}
