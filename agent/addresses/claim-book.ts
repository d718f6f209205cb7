// The desired claims, and how they differ from the store: writes, holds and erases claims, and records what may be free
// because of that. Decides only what follows from the claims themselves.

import { hash } from 'node:crypto';
import { expandV6 } from '../base/ip-range.ts';
import { sameValue } from '../base/same-value.ts';
import { type AddressClaim, portText } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import { grantedPorts } from '../kubernetes/port-limit.ts';
import { toLocal, whyNotNamed } from '../kubernetes/public-addresses.ts';
import type { Family, OwnerKey } from '../model/load-balancer.ts';
import { NO_NAMESPACE, ownerOf } from '../model/names.ts';
import { ClaimIndex, type NeverGiven } from './claim-index.ts';
import { heldBeyond, limitPlace } from './namespace-limit.ts';
import { PoolIndex } from './pool-index.ts';
import { type AddressRequest, namespaceOf, wishOf } from './request.ts';

/** For the store; `claim` is the desired claim, or the last one before it is deleted. */
export interface ClaimChange {
  readonly kind: 'create' | 'update' | 'delete';
  readonly claim: AddressClaim;
}

/** Has an address besides the Services with claims. */
export interface Holder {
  /** `Node n1`. */
  readonly name: string;
  /** The address is given out if no other one is free. */
  readonly givesWay: boolean;
}

const RELEASE_AFTER_MS = 600_000;
/** Characters of a name in that of a claim, which has at most 253; a longer one is replaced by its hash. */
const MAX_NAME = 128;
const HASH_DIGITS = 32;
/** Addresses that are held for Services of one namespace that are gone: beyond them the first one is released. */
const MAX_HELD = 100;

export interface FreedPool {
  readonly pool: AddressPool;
  readonly family: Family;
  /** Services that have tried the pool since. */
  readonly tried: Set<string>;
}

export class ClaimBook {
  #pools = new PoolIndex([]);
  readonly index: ClaimIndex;
  /** Milliseconds for which an address is kept for a Service that is gone. */
  releaseAfter = RELEASE_AFTER_MS;
  readonly holderOf: (address: string) => Holder | undefined;
  /** By pool: the last of its addresses that was passed over because an endpoint has it. */
  readonly passedOver = new Map<AddressPool, string>();
  /** What Services may wait for, as keys of Waiting. */
  readonly freedPlaces = new Set<string>();
  readonly freedPools = new Map<string, FreedPool>();
  /** `pool v4 a`: an address of it has become a held one, which a waiting Service may get. */
  readonly heldPools = new Set<string>();
  #now = 0;
  /** Claims that may differ from the store, by name: what the store has. */
  #stored = new Map<string, AddressClaim | undefined>();

  constructor(holderOf: (address: string) => Holder | undefined, neverGiven: () => NeverGiven) {
    this.holderOf = holderOf;
    this.index = new ClaimIndex(this.#pools, neverGiven);
  }

  get pools(): PoolIndex {
    return this.#pools;
  }

  set pools(pools: PoolIndex) {
    this.#pools = pools;
    this.index.setPools(pools);
    this.passedOver.clear();
  }

  /** Begins an update: the differences that changes() has given are in the store. */
  begin(now: number): void {
    this.#now = now;
    this.#stored = new Map();
  }

  /** The leader overrules the store, which may lag behind; but reservations are made by users. */
  takeStored(claim: AddressClaim, isLeading: boolean, dirty: Set<string>): void {
    const known = this.index.get(claim.name);
    if (known !== undefined && sameValue(known, claim)) return;
    if (isLeading && known !== undefined && !known.reserved && !claim.reserved) {
      this.#stored.set(claim.name, claim);
      return;
    }
    this.index.put(claim);
    if (known !== undefined) this.#free(known);
    if (claim.reserved) this.freedPlaces.add(`address ${claim.address}`);
    for (const one of known === undefined ? [claim] : [known, claim]) this.#concern(one, isLeading, dirty);
  }

  /** A user frees an address by deleting a claim that is not in use; a claim in use is written again. */
  takeRemoved(name: string, isLeading: boolean, dirty: Set<string>): void {
    const known = this.index.get(name);
    if (known === undefined) return;
    if (isLeading && !known.reserved && known.heldUntil === 0) {
      this.#stored.set(name, undefined);
      return;
    }
    this.index.remove(name);
    this.#free(known);
    this.#concern(known, isLeading, dirty);
  }

  /** The Services whose claims may contradict one of the store, or no longer do. */
  #concern(claim: AddressClaim, isLeading: boolean, dirty: Set<string>): void {
    const others = isLeading || claim.reserved ? this.index.at(claim.address) : [];
    for (const { service } of [claim, ...others]) if (service !== '') dirty.add(service);
  }

  /** The claim was made in this update. */
  readonly isNew = ({ name }: AddressClaim): boolean =>
    this.#stored.has(name) && this.#stored.get(name) === undefined;

  /** Whether the pool may give the address; notes who else has it. */
  freedom(address: string, pool: AddressPool): 'free' | 'givingWay' | 'taken' {
    if (!this.index.isUnclaimed(address)) return 'taken';
    const holder = this.holderOf(address);
    if (holder === undefined) return 'free';
    if (!holder.givesWay) return 'taken';
    this.passedOver.set(pool, address);
    return 'givingWay';
  }

  /** Updates a claim to what the Service requests now, as far as the Services that share the address permit. */
  refresh(claim: AddressClaim, request: AddressRequest): void {
    const pool = this.#pools.ownerOf(claim.address);
    const granted = this.#granted(claim, request, pool);
    const { uid: serviceUID } = request;
    const publicAddress = this.#publicAddress(claim, request, pool);
    // No port without a sharing key would mean the whole address.
    if (granted?.length === 0 && request.sharingKey !== '') {
      this.#write({ ...claim, granted, serviceUID, publicAddress, heldUntil: 0 });
      return;
    }
    const wish = wishOf({ ...request, ports: granted ?? request.ports }, pool);
    const blockers = [...this.index.blockers(claim.address, wish)].filter(({ reserved }) => !reserved);
    if (blockers.length === 0) {
      const { sharingKey, ports } = wish;
      this.#write({ ...claim, sharingKey, ports, granted, serviceUID, publicAddress, heldUntil: 0 });
      return;
    }
    const others = new Set<string>();
    for (const other of this.index.at(claim.address)) {
      if (other.service !== claim.service) for (const port of other.ports) others.add(portText(port));
    }
    const free = (granted ?? request.ports).filter((port) => !others.has(portText(port)));
    const ports = claim.ports.length > 0 && free.length > 0 ? free : claim.ports;
    this.#write({ ...claim, ports, granted, serviceUID, publicAddress, heldUntil: 0 });
  }

  #granted(
    claim: AddressClaim,
    request: AddressRequest,
    pool: AddressPool | undefined,
  ): AddressClaim['granted'] {
    // A reservation overrules the rules of the pool.
    const isReserved = this.index.isReservedFor(claim.address, wishOf(request, pool));
    return grantedPorts(pool, isReserved ? undefined : claim.granted, request.ports);
  }

  /** The answer of a provisioner stays. */
  #publicAddress(
    { address, family, publicAddress }: Pick<AddressClaim, 'address' | 'family' | 'publicAddress'>,
    { publicAddresses }: AddressRequest,
    pool: AddressPool | undefined,
  ): string {
    if (pool?.public?.kind === 'provisioner') return publicAddress;
    const wanted = publicAddresses.find((each) => each.family === family)?.address;
    if (pool?.public?.kind !== 'allowed' || wanted === undefined) return '';
    // What it has stays, if the rule gets stricter.
    const why = this.whyNotPublic(wanted, address, wanted === publicAddress ? undefined : pool);
    return why === undefined ? wanted : '';
  }

  /** Why the owner of the address does not get this public one, and who has it; `pool`: whose rule counts. */
  whyNotPublic(
    wanted: string,
    address: string,
    pool: AddressPool | undefined,
  ): { readonly why: string; readonly holder: AddressClaim | undefined } | undefined {
    const holder = this.index.withPublic(wanted).find((claim) => claim.address !== address);
    if (holder !== undefined) return { why: '', holder };
    const other =
      this.#pools.ownerOf(wanted) ?? this.#pools.withPublic.find((each) => toLocal(each.public, wanted));
    if (other !== undefined) return { why: `it belongs to the pool "${other.name}"`, holder };
    const rule = pool && whyNotNamed(pool.public, wanted);
    return pool && rule !== undefined ? { why: `its pool "${pool.name}" ${rule}`, holder } : undefined;
  }

  /** The provisioner has answered with the public address of a claim; nothing changes if another one has it. */
  answered(name: string, publicAddress: string, dirty: Set<string>): void {
    const claim = this.index.get(name);
    if (claim === undefined || claim.reserved) return;
    if (this.#pools.ownerOf(claim.address)?.public?.kind !== 'provisioner') return;
    if (this.index.withPublic(publicAddress).some(({ address }) => address !== claim.address)) return;
    this.#write({ ...claim, publicAddress });
    dirty.add(claim.service);
  }

  inUse(key: string): readonly AddressClaim[] {
    return this.index.ofService(key).filter(({ heldUntil }) => heldUntil === 0);
  }

  /** `only`: these ports of it, because other Services have other ports without a sharing key. */
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
    const own = this.index.ofService(request.key).find((claim) => claim.address === address);
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
      // The rule allows them, or the owner has had them.
      granted: grantedPorts(pool, undefined, request.ports),
      publicAddress: this.#publicAddress(
        { address, family, publicAddress: own?.publicAddress ?? '' },
        request,
        pool,
      ),
      since: own?.since ?? this.#now,
      heldUntil: 0,
      reserved: false,
      namespace: '',
    });
    this.#trimHeld(request.namespace, pool);
  }

  /** What is held for a namespace counts among its addresses, so that it cannot hold more than it may have. */
  #trimHeld(namespace: string, pool: AddressPool | undefined): void {
    for (const claim of heldBeyond(namespace, pool, this)) this.erase(claim);
  }

  /** Reduces claims on the whole address to the ports that their Services request. */
  narrow(address: string, requests: ReadonlyMap<string, AddressRequest>): void {
    for (const claim of this.index.at(address))
      if (claim.ports.length === 0)
        this.#write({ ...claim, ports: requests.get(claim.service)?.ports ?? [] });
  }

  /** A reservation may have any name, also one that is made of the address. */
  #freeName(address: string, family: Family, sharingKey: string, service: string): string {
    const whole = wholeClaimName(address, family);
    if (sharingKey === '' && this.index.get(whole) === undefined) return whole;
    const shared = sharedClaimName(address, family, service);
    let name = shared;
    for (let i = 2; this.index.get(name) !== undefined; i++) name = `${shared}.${i}`;
    return name;
  }

  hold(claim: AddressClaim): void {
    if (this.releaseAfter <= 0) {
      this.erase(claim);
      return;
    }
    const namespace = namespaceOf(claim.service);
    // An owner that comes back gets what the rule allows then.
    const granted = claim.granted && [];
    this.#write({ ...claim, granted, heldUntil: this.#now + this.releaseAfter });
    const [first, ...others] = this.index.heldOf(namespace);
    if (first !== undefined && others.length >= MAX_HELD) this.erase(first);
    const pool = this.#pools.ownerOf(claim.address);
    if (pool === undefined) return;
    this.heldPools.add(`pool ${claim.family} ${pool.name}`);
    this.freedPlaces.add(limitPlace(namespace, pool.name));
    this.#trimHeld(namespace, pool);
  }

  #write(claim: AddressClaim): void {
    const before = this.index.get(claim.name);
    if (before !== undefined && sameValue(before, claim)) return;
    if (!this.#stored.has(claim.name)) this.#stored.set(claim.name, before);
    this.index.put(claim);
    if (before !== undefined) this.#free(before);
    const { sharingKey } = claim;
    if (sharingKey !== '' && sharingKey !== before?.sharingKey) this.freedPlaces.add(`key ${sharingKey}`);
  }

  erase(claim: AddressClaim): void {
    if (!this.#stored.has(claim.name)) this.#stored.set(claim.name, claim);
    this.index.remove(claim.name);
    this.#free(claim);
  }

  #free({ address, family, sharingKey, service, publicAddress }: AddressClaim): void {
    if (publicAddress !== '') this.freedPlaces.add(`public ${publicAddress}`);
    const owner = this.#pools.ownerOf(address);
    if (owner?.allowed?.addressesPerNamespace)
      this.freedPlaces.add(limitPlace(namespaceOf(service), owner.name));
    this.freedPlaces.add(`address ${address}`);
    if (sharingKey !== '') this.freedPlaces.add(`key ${sharingKey}`);
    const pool = this.index.isUnclaimed(address) ? owner : undefined;
    if (pool !== undefined)
      this.freedPools.set(`pool ${family} ${pool.name}`, { pool, family, tried: new Set() });
  }

  *changes(): Generator<void, readonly ClaimChange[]> {
    const changes: ClaimChange[] = [];
    for (const [name, before] of this.#stored) {
      const claim = this.index.get(name);
      if (claim !== undefined && before === undefined) changes.push({ kind: 'create', claim });
      else if (claim === undefined && before !== undefined) changes.push({ kind: 'delete', claim: before });
      else if (claim !== undefined && before !== undefined && !sameValue(claim, before))
        changes.push({ kind: 'update', claim });
      yield;
    }
    return changes.sort((a, b) => (a.claim.name < b.claim.name ? -1 : 1));
  }
}

/** `192-0-2-10`, `2001-0db8-0000-0000-0000-0000-0000-0010`: a DNS label, so that two hosts cannot both create it. */
export function wholeClaimName(address: string, family: Family): string {
  return family === 'v4' ? address.replaceAll('.', '-') : expandV6(address).join('-');
}

/**
 * `192-0-2-10.web.default`, for one of several claims on an address, `192-0-2-10.edge.default.gateway` for that of a Gateway:
 * an unambiguous DNS name, because names of Services and namespaces have no dots.
 */
export function sharedClaimName(address: string, family: Family, key: OwnerKey): string {
  const { kind, namespace, name } = ownerOf(key);
  const space = namespace === NO_NAMESPACE ? 'class' : namespace;
  const end = kind === 'Service' ? space : `${space}.${kind.toLowerCase()}`;
  const short = name.length <= MAX_NAME ? name : hash('sha256', name).slice(0, HASH_DIGITS);
  return `${wholeClaimName(address, family)}.${short}.${end}`;
}
