// Who may bind an address, protocol and port when several Services ask for it: the first by rank, of equal ones the
// oldest, then the first by name.
// An index of claims; each change costs no more than the claims that it touches.

import { compactList } from '../base/compact.ts';
import type { Protocol } from '../model/load-balancer.ts';

export interface Place {
  readonly address: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export interface Claim extends Place {
  /** Lower ones come first, however young. */
  readonly rank: number;
}

interface Claimant {
  /** `address protocol port`. */
  readonly place: string;
  readonly key: string;
  readonly rank: number;
  readonly created: number;
}

export class VipClaims {
  /** Place to the Services that ask for it, the holder first. */
  readonly #claimants = new Map<string, readonly Claimant[]>();
  /** Service key to what it asks for. */
  readonly #claims = new Map<string, readonly Claimant[]>();

  /**
   * Replaces what `key` asks for (nothing: []) and returns the other Services for which a holder changed.
   * `created` is in milliseconds, Infinity where unknown.
   */
  update(key: string, created: number, claims: readonly Claim[]): ReadonlySet<string> {
    const before = byPlace(this.#claims.get(key) ?? []);
    const after = byPlace(claims.map((claim) => ({ place: placeOf(claim), key, rank: claim.rank, created })));
    const affected = new Set<string>();
    for (const [place, claimant] of before)
      if (!isSame(claimant, after.get(place))) this.#remove(place, key, affected);
    for (const [place, claimant] of after)
      if (!isSame(claimant, before.get(place))) this.#add(claimant, affected);
    if (after.size === 0) this.#claims.delete(key);
    else this.#claims.set(key, compactList([...after.values()]));
    affected.delete(key);
    return affected;
  }

  /** The key of the Service that holds the place; undefined where nobody asks for it. */
  holder(place: Place): string | undefined {
    return this.#claimants.get(placeOf(place))?.[0]?.key;
  }

  #add(claimant: Claimant, affected: Set<string>): void {
    const { place } = claimant;
    const before = this.#claimants.get(place) ?? [];
    this.#set(place, before, [...before, claimant].sort(bySeniority), affected);
  }

  #remove(place: string, key: string, affected: Set<string>): void {
    const before = this.#claimants.get(place) ?? [];
    const after = before.filter((claimant) => claimant.key !== key);
    this.#set(place, before, after, affected);
  }

  #set(place: string, before: readonly Claimant[], after: readonly Claimant[], affected: Set<string>): void {
    if (after.length === 0) this.#claimants.delete(place);
    else this.#claimants.set(place, compactList(after));
    if (before[0]?.key !== after[0]?.key) for (const { key } of after) affected.add(key);
  }
}

function byPlace(claimants: readonly Claimant[]): Map<string, Claimant> {
  return new Map(claimants.map((claimant) => [claimant.place, claimant]));
}

function placeOf({ address, protocol, port }: Place): string {
  return [address, protocol, port].join(' ');
}

function isSame(claimant: Claimant, other: Claimant | undefined): boolean {
  return claimant.rank === other?.rank && claimant.created === other.created;
}

function bySeniority(a: Claimant, b: Claimant): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}
