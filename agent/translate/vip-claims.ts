// Who may bind an address, protocol and port when several Services ask for it: the oldest, then the first by name.
// An index of claims; each change costs no more than the claims that it touches.

import type { Protocol } from '../model.ts';

export interface Claim {
  readonly address: string;
  readonly protocol: Protocol;
  readonly port: number;
}

interface Claimant {
  readonly key: string;
  readonly created: number;
}

export class VipClaims {
  /** `address protocol port` to the Services that ask for it, the holder first. */
  readonly #claimants = new Map<string, Claimant[]>();
  /** Service key to what it asks for. */
  readonly #claims = new Map<string, { readonly created: number; readonly places: ReadonlySet<string> }>();

  /**
   * Replaces what `key` asks for (nothing: []) and returns the other Services for which a holder changed.
   * `created` is in milliseconds, Infinity where unknown.
   */
  update(key: string, created: number, claims: readonly Claim[]): ReadonlySet<string> {
    const before = this.#claims.get(key);
    const places = new Set(claims.map(placeOf));
    const affected = new Set<string>();
    const sameAge = before === undefined || before.created === created;
    for (const place of before?.places ?? [])
      if (!places.has(place) || !sameAge) this.#remove(place, key, affected);
    for (const place of places)
      if (!before?.places.has(place) || !sameAge) this.#add(place, { key, created }, affected);
    if (places.size === 0) this.#claims.delete(key);
    else this.#claims.set(key, { created, places });
    affected.delete(key);
    return affected;
  }

  /** The key of the Service that holds the place; undefined where nobody asks for it. */
  holder(claim: Claim): string | undefined {
    return this.#claimants.get(placeOf(claim))?.[0]?.key;
  }

  #add(place: string, claimant: Claimant, affected: Set<string>): void {
    const before = this.#claimants.get(place) ?? [];
    this.#set(place, before, [...before, claimant].sort(byAge), affected);
  }

  #remove(place: string, key: string, affected: Set<string>): void {
    const before = this.#claimants.get(place) ?? [];
    const after = before.filter((claimant) => claimant.key !== key);
    this.#set(place, before, after, affected);
  }

  #set(place: string, before: readonly Claimant[], after: Claimant[], affected: Set<string>): void {
    if (after.length === 0) this.#claimants.delete(place);
    else this.#claimants.set(place, after);
    if (before[0]?.key !== after[0]?.key) for (const { key } of after) affected.add(key);
  }
}

function placeOf({ address, protocol, port }: Claim): string {
  return `${address} ${protocol} ${port}`;
}

function byAge(a: Claimant, b: Claimant): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}
