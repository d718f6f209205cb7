// The claims by name, address, Service and sharing key, so that the work is proportional to the change. Also holds claims
// that contradict each other; hasOlderRival() decides between them.

import { familyOf } from '../base/ip.ts';
import { type AddressClaim, type ClaimedPort, portText } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family } from '../model/load-balancer.ts';
import type { PoolIndex } from './pool-index.ts';
import { namespaceOf, type Wish } from './request.ts';

/** Addresses of one pool and family that the pool owns; `total` and `conflicting` count those of its blocks. */
export interface PoolCount {
  readonly total: bigint;
  readonly free: bigint;
  /** A Service has the address, or some of its ports. */
  readonly used: bigint;
  /** Kept for a Service that is gone, or reserved. */
  readonly held: bigint;
  /** Never given out: owned by another pool with an overlapping block, or the address of a Node. */
  readonly conflicting: bigint;
}

type Names = Set<string>;

interface ClaimsOfAddress {
  readonly family: Family;
  owner: AddressPool | undefined;
  readonly claims: Map<string, AddressClaim>;
  readonly reservations: Names;
  /** Claims on the whole address. */
  readonly wholes: Names;
  /** `TCP/80` → claims on it. */
  readonly ports: Map<string, Names>;
  /** Sharing key, '' for none → namespace → claims on ports. */
  readonly keys: Map<string, Map<string, Names>>;
  /** How many claims Services have now. */
  inUse: number;
}

/** Address → who has it, such as `Node n1`; the same map as before unless it has changed. */
export type NeverGiven = ReadonlyMap<string, string>;

type Count = Record<Family, { used: bigint; held: bigint }>;

export class ClaimIndex {
  #pools: PoolIndex;
  readonly #claims = new Map<string, AddressClaim>();
  readonly #addresses = new Map<string, ClaimsOfAddress>();
  /** By Service. */
  readonly #ofService = new Map<string, Names>();
  readonly #reservedFor = new Map<string, Names>();
  /** Sharing key → addresses, of all namespaces. */
  readonly #shared = new Map<string, Set<string>>();
  /** Public address → claims that have it. */
  readonly #public = new Map<string, Names>();
  readonly #held = new Set<string>();
  readonly #heldOf = new Map<string, Names>();
  /** Namespace → claims that its owners have now. */
  readonly #usedBy = new Map<string, Names>();
  readonly #counts = new Map<AddressPool, Count>();
  readonly #neverGiven: () => NeverGiven;
  /** The addresses of each pool that are never given, as read from `of`. */
  #ofNodes: { readonly of?: NeverGiven; readonly pools: ReadonlyMap<AddressPool, readonly string[]> } = {
    pools: new Map(),
  };

  constructor(pools: PoolIndex, neverGiven: () => NeverGiven) {
    this.#pools = pools;
    this.#neverGiven = neverGiven;
  }

  /** The claims stay; only their addresses may have another owner. */
  setPools(pools: PoolIndex): void {
    this.#pools = pools;
    this.#ofNodes = { pools: new Map() };
    this.#counts.clear();
    for (const [address, claimed] of this.#addresses) {
      claimed.owner = pools.ownerOf(address);
      this.#count(claimed, 1n);
    }
  }

  get(name: string): AddressClaim | undefined {
    return this.#claims.get(name);
  }

  all(): IterableIterator<AddressClaim> {
    return this.#claims.values();
  }

  services(): IterableIterator<string> {
    return this.#ofService.keys();
  }

  put(claim: AddressClaim): void {
    this.remove(claim.name);
    this.#claims.set(claim.name, claim);
    const known = this.#addresses.get(claim.address);
    if (known !== undefined) this.#count(known, -1n);
    const claimed = known ?? this.#newAddress(claim);
    link(claimed, claim);
    this.#count(claimed, 1n);
    if (claim.sharingKey !== '') add(this.#shared, claim.sharingKey, claim.address);
    if (claim.service !== '')
      add(claim.reserved ? this.#reservedFor : this.#ofService, claim.service, claim.name);
    if (claim.publicAddress !== '') add(this.#public, claim.publicAddress, claim.name);
    if (claim.heldUntil === 0 && !claim.reserved) add(this.#usedBy, namespaceOf(claim.service), claim.name);
    if (claim.heldUntil === 0 || claim.reserved) return;
    this.#held.add(claim.name);
    add(this.#heldOf, namespaceOf(claim.service), claim.name);
  }

  remove(name: string): void {
    const claim = this.#claims.get(name);
    const claimed = claim && this.#addresses.get(claim.address);
    if (claim === undefined || claimed === undefined) return;
    this.#claims.delete(name);
    this.#count(claimed, -1n);
    unlink(claimed, claim);
    if (claimed.claims.size > 0) this.#count(claimed, 1n);
    else this.#addresses.delete(claim.address);
    if (claim.sharingKey !== '' && !claimed.keys.has(claim.sharingKey))
      drop(this.#shared, claim.sharingKey, claim.address);
    if (claim.service !== '') drop(claim.reserved ? this.#reservedFor : this.#ofService, claim.service, name);
    if (claim.publicAddress !== '') drop(this.#public, claim.publicAddress, name);
    this.#held.delete(name);
    drop(this.#heldOf, namespaceOf(claim.service), name);
    drop(this.#usedBy, namespaceOf(claim.service), name);
  }

  /** Claims that are held for Services of the namespace, the one that is held for the longest time first. */
  heldOf(namespace: string): readonly AddressClaim[] {
    return this.#named(this.#heldOf.get(namespace)).sort(byHold);
  }

  /** Claims with this public address, the oldest first. */
  withPublic(address: string): readonly AddressClaim[] {
    return this.#named(this.#public.get(address));
  }

  /** Claims that owners of the namespace have now, the oldest first. */
  usedBy(namespace: string): readonly AddressClaim[] {
    return this.#named(this.#usedBy.get(namespace));
  }

  /** The oldest first; without reservations. */
  ofService(service: string): readonly AddressClaim[] {
    return this.#named(this.#ofService.get(service));
  }

  reservationsFor(service: string): readonly AddressClaim[] {
    return this.#named(this.#reservedFor.get(service));
  }

  /** All claims on an address, reservations among them, the oldest first. */
  at(address: string): readonly AddressClaim[] {
    return this.#named(this.#addresses.get(address)?.claims.keys());
  }

  isUnclaimed(address: string): boolean {
    return !this.#addresses.has(address);
  }

  /** The addresses with a sharing key, of all Services. */
  sharedBy(sharingKey: string): ReadonlySet<string> {
    return this.#shared.get(sharingKey) ?? new Set();
  }

  /** The address has a reservation for this Service or its namespace. */
  isReservedFor(address: string, { service, namespace }: Pick<Wish, 'service' | 'namespace'>): boolean {
    const claimed = this.#addresses.get(address);
    for (const name of claimed?.reservations ?? []) {
      if (isFor(claimed?.claims.get(name), service, namespace)) return true;
    }
    return false;
  }

  /** The claims of others in the way, reservations first. A reservation for the Service overrules other reservations. */
  *blockers(address: string, wish: Wish): Generator<AddressClaim> {
    const claimed = this.#addresses.get(address);
    if (claimed === undefined) return;
    if (claimed.reservations.size > 0 && !this.isReservedFor(address, wish)) {
      yield* this.#named(claimed.reservations);
    }
    for (const name of this.#rivals(claimed, wish)) {
      const claim = claimed.claims.get(name);
      if (claim !== undefined && claim.service !== wish.service) yield claim;
    }
  }

  /** An older claim contradicts this one: of two such claims the older one counts. */
  hasOlderRival(claim: AddressClaim): boolean {
    const claimed = this.#addresses.get(claim.address);
    if (claimed === undefined || claim.reserved) return false;
    const rivals =
      claim.ports.length === 0 ? othersThanReservations(claimed) : portRivals(claimed, claim.ports);
    for (const name of rivals) {
      const other = claimed.claims.get(name);
      if (other !== undefined && other.service !== claim.service && byAge(other, claim) < 0) return true;
    }
    return false;
  }

  /** Held claims that have ended. */
  expired(now: number): readonly AddressClaim[] {
    return this.#named(this.#held).filter(({ heldUntil }) => heldUntil <= now);
  }

  /** The claim of one of the pools that has been held for the longest time. */
  firstHeld(pools: readonly AddressPool[], family: Family): AddressClaim | undefined {
    if (pools.every((pool) => this.count(pool, family).held === 0n)) return undefined;
    return this.#named(this.#held)
      .sort(byHold)
      .find(({ address }) => {
        const claimed = this.#addresses.get(address);
        if (claimed?.inUse !== 0 || claimed.family !== family || claimed.reservations.size > 0) return false;
        return claimed.owner !== undefined && pools.includes(claimed.owner);
      });
  }

  /** The end of the next held claim, milliseconds since the epoch; Infinity for none. */
  nextExpiry(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const name of this.#held) next = Math.min(next, this.#claims.get(name)?.heldUntil ?? next);
    return next;
  }

  count(pool: AddressPool, family: Family): PoolCount {
    const { used, held } = this.#counts.get(pool)?.[family] ?? { used: 0n, held: 0n };
    const total = this.#pools.total(pool, family);
    const size = this.#pools.size(pool, family);
    const nodes = this.neverGivenOf(pool).filter(
      (address) => familyOf(address) === family && this.isUnclaimed(address),
    );
    const given = size - BigInt(nodes.length);
    return { total, free: given - used - held, used, held, conflicting: total - given };
  }

  /** The addresses of the pool that Nodes have. */
  neverGivenOf(pool: AddressPool): readonly string[] {
    const now = this.#neverGiven();
    if (this.#ofNodes.of !== now) {
      const pools = new Map<AddressPool, string[]>();
      for (const address of now.keys()) {
        const owner = this.#pools.ownerOf(address);
        if (owner !== undefined) pools.set(owner, [...(pools.get(owner) ?? []), address]);
      }
      this.#ofNodes = { of: now, pools };
    }
    return this.#ofNodes.pools.get(pool) ?? [];
  }

  #newAddress({ address, family }: AddressClaim): ClaimsOfAddress {
    const claimed: ClaimsOfAddress = {
      family,
      owner: this.#pools.ownerOf(address),
      claims: new Map(),
      reservations: new Set(),
      wholes: new Set(),
      ports: new Map(),
      keys: new Map(),
      inUse: 0,
    };
    this.#addresses.set(address, claimed);
    return claimed;
  }

  *#rivals(claimed: ClaimsOfAddress, wish: Wish): Generator<string> {
    if (wish.ports.length === 0) {
      yield* othersThanReservations(claimed);
      return;
    }
    yield* portRivals(claimed, wish.ports);
    for (const [key, namespaces] of claimed.keys) {
      if (key === wish.sharingKey && wish.acrossNamespaces) continue;
      for (const [namespace, names] of namespaces) {
        if (key !== wish.sharingKey || namespace !== wish.namespace) yield* names;
      }
    }
  }

  #count(claimed: ClaimsOfAddress, by: 1n | -1n): void {
    if (claimed.owner === undefined || claimed.claims.size === 0) return;
    let count = this.#counts.get(claimed.owner);
    if (count === undefined) {
      count = { v4: { used: 0n, held: 0n }, v6: { used: 0n, held: 0n } };
      this.#counts.set(claimed.owner, count);
    }
    count[claimed.family][claimed.inUse > 0 ? 'used' : 'held'] += by;
  }

  #named(names: Iterable<string> | undefined): AddressClaim[] {
    const claims: AddressClaim[] = [];
    for (const name of names ?? []) {
      const claim = this.#claims.get(name);
      if (claim !== undefined) claims.push(claim);
    }
    return claims.length > 1 ? claims.sort(byAge) : claims;
  }
}

function isFor(reservation: AddressClaim | undefined, service: string, namespace: string): boolean {
  if (reservation === undefined) return false;
  return reservation.service === '' ? reservation.namespace === namespace : reservation.service === service;
}

function byAge(a: AddressClaim, b: AddressClaim): number {
  if (a.since !== b.since) return a.since - b.since;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function byHold(a: AddressClaim, b: AddressClaim): number {
  return a.heldUntil - b.heldUntil || byAge(a, b);
}

function* othersThanReservations({ claims }: ClaimsOfAddress): Generator<string> {
  for (const [name, claim] of claims) if (!claim.reserved) yield name;
}

function* portRivals(claimed: ClaimsOfAddress, ports: readonly ClaimedPort[]): Generator<string> {
  yield* claimed.wholes;
  for (const port of ports) yield* claimed.ports.get(portText(port)) ?? [];
}

function link(claimed: ClaimsOfAddress, claim: AddressClaim): void {
  const { name, sharingKey, service } = claim;
  claimed.claims.set(name, claim);
  if (claim.reserved) {
    claimed.reservations.add(name);
    return;
  }
  if (claim.heldUntil === 0) claimed.inUse++;
  if (claim.ports.length === 0) claimed.wholes.add(name);
  for (const port of claim.ports) add(claimed.ports, portText(port), name);
  if (claim.ports.length === 0) return;
  const namespaces = claimed.keys.get(sharingKey) ?? new Map<string, Names>();
  claimed.keys.set(sharingKey, namespaces);
  add(namespaces, namespaceOf(service), name);
}

function unlink(claimed: ClaimsOfAddress, claim: AddressClaim): void {
  const { name, sharingKey, service } = claim;
  claimed.claims.delete(name);
  claimed.reservations.delete(name);
  if (claim.reserved) return;
  if (claim.heldUntil === 0) claimed.inUse--;
  claimed.wholes.delete(name);
  for (const port of claim.ports) drop(claimed.ports, portText(port), name);
  const namespaces = claimed.keys.get(sharingKey);
  if (namespaces === undefined) return;
  drop(namespaces, namespaceOf(service), name);
  if (namespaces.size === 0) claimed.keys.delete(sharingKey);
}

function add(map: Map<string, Set<string>>, key: string, value: string): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, new Set([value]));
  else values.add(value);
}

function drop(map: Map<string, Set<string>>, key: string, value: string): void {
  const values = map.get(key);
  values?.delete(value);
  if (values?.size === 0) map.delete(key);
}
