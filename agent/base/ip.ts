// Addresses and CIDRs: text in, canonical text out (RFC 5952 for IPv6), so that equal addresses are equal strings.
// The only file that imports ipaddr.js. Pure.

import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Family } from '../model/load-balancer.ts';

/** The longest IPv6 text has 45 characters. */
const LONGEST = 45;

/**
 * undefined for everything that is not exactly one address: no blanks, no zone (`%eth0`), no leading zeros in IPv4.
 * IPv6 that stands for IPv4 (mapped `::ffff:192.0.2.1`, the deprecated compatible `::192.0.2.1`) is refused: it would
 * be a second spelling of an address of the other family, and HAProxy prints it in yet another one.
 */
export function parseAddress(
  text: string,
): { readonly address: string; readonly family: Family } | undefined {
  if (text.length > LONGEST) return undefined;
  if (isIPv4(text)) return { address: text, family: 'v4' };
  const parsed = parseV6(text);
  return parsed === undefined ? undefined : { address: parsed.toString(), family: 'v6' };
}

/**
 * `address/prefix`, the prefix in decimal digits without leading zeros; the host bits may be set and come back as zero.
 * undefined for everything else, a bare address too.
 */
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

/** Of an address or CIDR that one of the two above has returned. */
export function familyOf(address: string): Family {
  return address.includes(':') ? 'v6' : 'v4';
}

function parseV6(text: string): ipaddr.IPv6 | undefined {
  // node:net first: ipaddr.js reads 010.0.0.1 as octal, and ::192.0.2.1 as if it were mapped.
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const parsed = ipaddr.IPv6.parse(text);
  return standsForV4(parsed) ? undefined : parsed;
}

/** RFC 4291, 2.5.5; `::`, `::1` and their like up to `::ffff` are ordinary. */
function standsForV4({ parts }: ipaddr.IPv6): boolean {
  if (parts.slice(0, 5).some((part) => part !== 0)) return false;
  return parts[5] === 0xffff || (parts[5] === 0 && parts[6] !== 0);
}
