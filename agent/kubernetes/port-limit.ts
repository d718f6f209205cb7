// The ports that an owner may have of an address in a pool with a rule about ports: those that the rule allows, and those
// that it had before the rule got stricter, which its claim records. Pure.

import type { OwnerKey, Problem } from '../model/load-balancer.ts';
import { objectOf } from '../model/names.ts';
import { type AddressClaim, type ClaimedPort, portText } from './address-claim.ts';
import type { AddressPool } from './address-pool.ts';
import { type AllowedRule, limitsPorts, whyNotPort } from './allowed-rule.ts';

/** The addresses of an owner from pools. */
export interface LimitedAddresses {
  readonly addresses: readonly { readonly address: string; readonly limit?: PortLimit | undefined }[];
}

/** What limits the ports of one address. */
export interface PortLimit {
  readonly pool: string;
  readonly allowed: AllowedRule;
  /** undefined: not recorded yet, so that the owner keeps what it has. */
  readonly granted: readonly ClaimedPort[] | undefined;
}

/** undefined if the pool does not limit ports. */
export function portLimit(pool: AddressPool | undefined, claim: AddressClaim): PortLimit | undefined {
  if (pool === undefined || !limitsPorts(pool.allowed)) return undefined;
  return { pool: pool.name, allowed: pool.allowed, granted: claim.granted };
}

/** Completes `its pool `; undefined if the owner may have the port. */
export function whyNotGranted(limit: PortLimit | undefined, port: ClaimedPort): string | undefined {
  if (limit === undefined || limit.granted === undefined) return undefined;
  if (limit.granted.some((each) => portText(each) === portText(port))) return undefined;
  const why = whyNotPort(limit.allowed, port);
  return why === undefined ? undefined : `"${limit.pool}" ${why}`;
}

/** For the claim, which keeps `before`; undefined if the pool does not limit ports. */
export function grantedPorts(
  pool: AddressPool | undefined,
  before: readonly ClaimedPort[] | undefined,
  requested: readonly ClaimedPort[],
): readonly ClaimedPort[] | undefined {
  if (pool === undefined || !limitsPorts(pool.allowed)) return undefined;
  const { allowed } = pool;
  if (before === undefined) return requested;
  const had = new Set(before.map(portText));
  return requested.filter((port) => had.has(portText(port)) || whyNotPort(allowed, port) === undefined);
}

export function notGranted(key: OwnerKey, address: string, port: ClaimedPort, why: string): Problem {
  const { protocol, port: number } = port;
  const message = `Cannot have ${address} ${protocol} port ${number}: its pool ${why}`;
  return { object: objectOf(key), reason: 'AddressNotAllowed', message, port: { protocol, port: number } };
}

/** For a listener of the owner; undefined if it may have the port of the address. */
export function portRefusal(
  key: OwnerKey,
  ofPools: LimitedAddresses | undefined,
): (address: string, port: ClaimedPort) => Problem | undefined {
  return (address, port) => {
    const limit = ofPools?.addresses.find((each) => each.address === address)?.limit;
    const why = whyNotGranted(limit, port);
    return why === undefined ? undefined : notGranted(key, address, port, why);
  };
}
