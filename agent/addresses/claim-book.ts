// The claims as they shall be, and how they differ from the store: what is written, kept, let go, and what may be free
// because of it. Decides nothing but what follows from the claims themselves. Owns its state; touches nothing else.

import { type AddressClaim, portText } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family } from '../model/load-balancer.ts';
import { Ledger } from './claim-index.ts';
import { sharedClaimName, wholeClaimName } from './claim-name.ts';
import { wishOf } from './find-address.ts';
import { PoolIndex } from './pool-index.ts';
import type { AddressRequest } from './request.ts';
import { sameRecord } from './same-record.ts';

/** What is to become of an AddressClaim; `claim` is as it shall be, or as it was before it is deleted. */
export interface ClaimChange {
  readonly kind: 'create' | 'update' | 'delete';
  readonly claim: AddressClaim;
}

/** Ten minutes. */
export const RELEASE_AFTER = 600_000;

export interface FreedPool {
  readonly pool: AddressPool;
  readonly family: Family;
  /** Who has been looked at since. */
  readonly tried: Set<string>;
}

export class ClaimBook {
  #pools = new PoolIndex([]);
  readonly ledger = new Ledger(this.#pools);
  /** Milliseconds for which an address is kept for a Service that is gone. */
  releaseAfter = RELEASE_AFTER;
  /** What somebody may be waiting for, as words that Waiting knows. */
  readonly freedPlaces = new Set<string>();
  readonly freedPools = new Map<string, FreedPool>();
  #now = 0;
  /** Claims that may differ from the store, by name: what the store has. */
  #stored = new Map<string, AddressClaim | undefined>();

  get pools(): PoolIndex {
    return this.#pools;
  }

  set pools(pools: PoolIndex) {
    this.#pools = pools;
    this.ledger.setPools(pools);
  }

  /** Forgets the differences to the store that changes() has told. */
  begin(now: number): void {
    this.#now = now;
    this.#stored = new Map();
  }

  /** Whoever leads knows better than the store, which may lag behind; but reservations are made by users. */
  takeStored(claim: AddressClaim, isLeading: boolean, dirty: Set<string>): void {
    const known = this.ledger.get(claim.name);
    if (known !== undefined && sameRecord(known, claim)) return;
    if (isLeading && known !== undefined && !known.reserved && !claim.reserved) {
      this.#stored.set(claim.name, claim);
      return;
    }
    this.ledger.put(claim);
    if (known !== undefined) this.#free(known);
    if (claim.reserved) this.freedPlaces.add(`address ${claim.address}`);
    for (const one of known === undefined ? [claim] : [known, claim]) this.#concern(one, isLeading, dirty);
  }

  /** Deleting a claim that nobody uses is how a user gives an address free; one that is in use is written again. */
  takeRemoved(name: string, isLeading: boolean, dirty: Set<string>): void {
    const known = this.ledger.get(name);
    if (known === undefined) return;
    if (isLeading && !known.reserved && known.heldUntil === 0) {
      this.#stored.set(name, undefined);
      return;
    }
    this.ledger.remove(name);
    this.#free(known);
    this.#concern(known, isLeading, dirty);
  }

  /** Who may be at odds with a claim that came from outside, or is no longer at odds with it. */
  #concern(claim: AddressClaim, isLeading: boolean, dirty: Set<string>): void {
    const others = isLeading || claim.reserved ? this.ledger.at(claim.address) : [];
    for (const { service } of [claim, ...others]) if (service !== '') dirty.add(service);
  }

  /** It has been made since begin(). */
  readonly isNew = ({ name }: AddressClaim): boolean =>
    this.#stored.has(name) && this.#stored.get(name) === undefined;

  /** Brings a claim to what the Service asks for now, as far as those it shares the address with leave it. */
  refresh(claim: AddressClaim, request: AddressRequest): void {
    const wish = wishOf(request, this.#pools.ownerOf(claim.address));
    const blockers = [...this.ledger.blockers(claim.address, wish)].filter(({ reserved }) => !reserved);
    const { uid: serviceUID } = request;
    if (blockers.length === 0) {
      const { sharingKey, ports } = wish;
      this.#write({ ...claim, sharingKey, ports, serviceUID, heldUntil: 0 });
      return;
    }
    const others = new Set<string>();
    for (const other of this.ledger.at(claim.address)) {
      if (other.service !== claim.service) for (const port of other.ports) others.add(portText(port));
    }
    const granted = request.ports.filter((port) => !others.has(portText(port)));
    const ports = claim.ports.length > 0 && granted.length > 0 ? granted : claim.ports;
    this.#write({ ...claim, ports, serviceUID, heldUntil: 0 });
  }

  inUse(key: string): readonly AddressClaim[] {
    return this.ledger.ofService(key).filter(({ heldUntil }) => heldUntil === 0);
  }

  /** `only`: these ports of it, where others have other ones without a sharing key. */
  take(
    request: AddressRequest,
    family: Family,
    address: string,
    pool: AddressPool,
    only?: AddressRequest['ports'],
  ): void {
    const { sharingKey, ports: wished } = wishOf(request, pool);
    const ports = only ?? wished;
    for (const claim of this.inUse(request.key)) if (claim.family === family) this.hold(claim);
    const own = this.ledger.ofService(request.key).find((claim) => claim.address === address);
    this.#write({
      kind: 'AddressClaim',
      name: own?.name ?? this.#freeName(address, family, sharingKey, request.key),
      address,
      family,
      pool: pool.name,
      service: request.key,
      serviceUID: request.uid,
      sharingKey,
      ports,
      since: own?.since ?? this.#now,
      heldUntil: 0,
      reserved: false,
      namespace: '',
    });
  }

  /** Leaves those who have all of an address the ports that they ask for. */
  narrow(address: string, requests: ReadonlyMap<string, AddressRequest>): void {
    for (const claim of this.ledger.at(address))
      if (claim.ports.length === 0)
        this.#write({ ...claim, ports: requests.get(claim.service)?.ports ?? [] });
  }

  /** A reservation may have the name of the address, or any other. */
  #freeName(address: string, family: Family, sharingKey: string, service: string): string {
    const whole = wholeClaimName(address, family);
    if (sharingKey === '' && this.ledger.get(whole) === undefined) return whole;
    const shared = sharedClaimName(address, family, service);
    let name = shared;
    for (let i = 2; this.ledger.get(name) !== undefined; i++) name = `${shared}.${i}`;
    return name;
  }

  hold(claim: AddressClaim): void {
    if (this.releaseAfter <= 0) this.erase(claim);
    else this.#write({ ...claim, heldUntil: this.#now + this.releaseAfter });
  }

  #write(claim: AddressClaim): void {
    const before = this.ledger.get(claim.name);
    if (before !== undefined && sameRecord(before, claim)) return;
    if (!this.#stored.has(claim.name)) this.#stored.set(claim.name, before);
    this.ledger.put(claim);
    if (before !== undefined) this.#free(before);
    const { sharingKey } = claim;
    if (sharingKey !== '' && sharingKey !== before?.sharingKey) this.freedPlaces.add(`key ${sharingKey}`);
  }

  erase(claim: AddressClaim): void {
    if (!this.#stored.has(claim.name)) this.#stored.set(claim.name, claim);
    this.ledger.remove(claim.name);
    this.#free(claim);
  }

  /** Part of what the claim had may be free now, or all of it. */
  #free({ address, family, sharingKey }: AddressClaim): void {
    this.freedPlaces.add(`address ${address}`);
    if (sharingKey !== '') this.freedPlaces.add(`key ${sharingKey}`);
    const pool = this.ledger.isUnclaimed(address) ? this.#pools.ownerOf(address) : undefined;
    if (pool !== undefined)
      this.freedPools.set(`pool ${family} ${pool.name}`, { pool, family, tried: new Set() });
  }

  *changes(): Generator<void, readonly ClaimChange[]> {
    const changes: ClaimChange[] = [];
    for (const [name, before] of this.#stored) {
      const claim = this.ledger.get(name);
      if (claim !== undefined && before === undefined) changes.push({ kind: 'create', claim });
      else if (claim === undefined && before !== undefined) changes.push({ kind: 'delete', claim: before });
      else if (claim !== undefined && before !== undefined && !sameRecord(claim, before))
        changes.push({ kind: 'update', claim });
      yield;
    }
    return changes.sort((a, b) => (a.claim.name < b.claim.name ? -1 : 1));
  }
}
