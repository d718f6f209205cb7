// How the addresses of the pools are doing: what `status` and the metrics tell. Values only.

import type { Addresses } from '../addresses/addresses.ts';
import type { ClaimHome } from './kept-claims.ts';

export interface AddressStatus {
  readonly home: ClaimHome;
  /** This host gives addresses. */
  readonly leading: boolean;
  readonly pools: readonly PoolStatus[];
  /** Claims that their store has yet to take. */
  readonly unkept: number;
  /** What the program of the setting `provisioner` has yet to carry out. */
  readonly provisioning: number;
  /** Why claims cannot be kept, or the status of pools not be written; '' where both can. */
  readonly fault: string;
}

export interface PoolStatus {
  readonly name: string;
  readonly family: 'v4' | 'v6';
  /** Rounded where they are more than a number can hold. */
  readonly total: number;
  readonly free: number;
  readonly used: number;
  readonly held: number;
  readonly conflicting: number;
}

/** One for each pool and family that it has. */
export function poolStatuses(addresses: Addresses): readonly PoolStatus[] {
  return addresses.counts().flatMap(({ pool, v4, v6 }) =>
    Object.entries({ v4, v6 } as const)
      .filter(([, { total }]) => total > 0n)
      .map(([family, { total, free, used, held, conflicting }]) => ({
        name: pool.name,
        family: family as 'v4' | 'v6',
        total: Number(total),
        free: Number(free),
        used: Number(used),
        held: Number(held),
        conflicting: Number(conflicting),
      })),
  );
}
