// The state of the pools and their claims, for `status` and the metrics. Values only.

import type { Addresses } from '../addresses/addresses.ts';
import type { ClaimHome } from './stored-claims.ts';

export interface AddressStatus {
  readonly home: ClaimHome;
  /** This host decides on addresses. */
  readonly leading: boolean;
  readonly pools: readonly PoolStatus[];
  /** How many claims are not stored yet. */
  readonly unkept: number;
  /** How many requests the program of the setting `provisioner` has not carried out yet. */
  readonly provisioning: number;
  /** Why claims cannot be stored, or the status of pools cannot be written; '' for none. */
  readonly fault: string;
}

export interface PoolStatus {
  readonly name: string;
  readonly family: 'v4' | 'v6';
  /** A decimal number, as are the others: a JSON number cannot hold the size of an IPv6 pool. */
  readonly total: string;
  readonly free: string;
  readonly used: string;
  readonly held: string;
  readonly conflicting: string;
}

/** One for each pool and each of its families. */
export function poolStatuses(addresses: Addresses): readonly PoolStatus[] {
  return addresses.counts().flatMap(({ pool, v4, v6 }) =>
    Object.entries({ v4, v6 } as const)
      .filter(([, { total }]) => total > 0n)
      .map(([family, { total, free, used, held, conflicting }]) => ({
        name: pool.name,
        family: family as 'v4' | 'v6',
        total: String(total),
        free: String(free),
        used: String(used),
        held: String(held),
        conflicting: String(conflicting),
      })),
  );
}
