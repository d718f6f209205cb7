// Gives addresses of the pools to Services and keeps what it has given: claims first, then what is new.
// One host leads and decides; the others follow the claims it writes. Pure: takes changes and the time, gives the
// claims to write and the Services whose addresses differ; the work is proportional to the change.

import { type Assignment, assignmentOf } from './addresses/assignment.ts';
import { sharedClaimName, wholeClaimName } from './addresses/claim-name.ts';
import { type Found, findAddress, findInStatus, wishOf } from './addresses/find-address.ts';
import { Ledger, type PoolCount } from './addresses/ledger.ts';
import { PoolIndex } from './addresses/pool-index.ts';
import { whyNotAllowed } from './addresses/pool-rules.ts';
import type { AddressRequest } from './addresses/request.ts';
import { byAge, Waiting } from './addresses/waiting.ts';
import { type AddressClaim, type AddressPool, portText } from './kubernetes/address-schemas.ts';
import type { Family, Problem } from './model.ts';

export type { AssignedAddress, Assignment } from './addresses/assignment.ts';
export { addressRequest } from './addresses/request.ts';
export type { AddressRequest };

/** What is to become of an AddressClaim; `claim` is as it shall be, or as it was before it is deleted. */
export interface ClaimChange {
  readonly kind: 'create' | 'update' | 'delete';
  readonly claim: AddressClaim;
}

export interface AddressesChange {
  /** All of them. */
  readonly pools?: readonly AddressPool[];
  /** What Services ask for now; undefined: nothing, or there is no such Service. */
  readonly requests?: Iterable<readonly [key: string, request: AddressRequest | undefined]>;
  /** What the store of claims has; `removed` are names. */
  readonly claims?: { readonly upserted?: readonly AddressClaim[]; readonly removed?: readonly string[] };
  /** Whether this host decides. Only once all pools, Services and claims are known: what is unknown counts as free. */
  readonly leading?: boolean;
  /** Milliseconds for which an address is kept for a Service that is gone. */
  readonly releaseAfter?: number;
}

export interface AddressesOutcome {
  /** Services whose assignment differs. */
  readonly changed: ReadonlySet<string>;
  /** By name; nothing on a host that follows. */
  readonly claimChanges: readonly ClaimChange[];
}

/** From nothing: what the claims and the requests come to, whatever their order. */
export function allocate(input: {
  readonly pools: readonly AddressPool[];
  readonly claims: readonly AddressClaim[];
  readonly requests: readonly AddressRequest[];
  readonly releaseAfter: number;
  readonly now: number;
}): {
  readonly assignments: ReadonlyMap<string, Assignment>;
  readonly claimChanges: readonly ClaimChange[];
  readonly problems: readonly Problem[];
} {
  const addresses = new Addresses();
  const { pools, claims, releaseAfter, now } = input;
  const requests = input.requests.map((request) => [request.key, request] as const);
  const { claimChanges } = addresses.update(
    { pools, claims: { upserted: claims }, requests, releaseAfter, leading: true },
    now,
  );
  const assignments = new Map(
    requests.map(([key]) => [
      key,
      addresses.assignment(key) ?? { key, addresses: [], isComplete: false, problems: [] },
    ]),
  );
  const ofServices = [...assignments.values()].flatMap(({ problems }) => problems);
  return { assignments, claimChanges, problems: [...addresses.poolProblems(), ...ofServices] };
}

/** Ten minutes. */
export const RELEASE_AFTER = 600_000;
/** How many of those who wait for a pool are looked at before the next look at what is left of it. */
const AT_ONCE = 64;

export class Addresses {
  #pools = new PoolIndex([]);
  readonly #ledger = new Ledger(this.#pools);
  readonly #requests = new Map<string, AddressRequest>();
  readonly #assignments = new Map<string, Assignment>();
  readonly #waiting = new Waiting();
  #releaseAfter = RELEASE_AFTER;
  #leading = false;
  // Of the update under way:
  #now = 0;
  /** Claims that differ from the store, by name: what the store has. */
  #stored = new Map<string, AddressClaim | undefined>();
  /** What somebody may be waiting for. */
  readonly #again = new Set<string>();
  readonly #freed = { places: new Set<string>(), pools: new Map<string, FreedPool>() };

  /** `now` in milliseconds since the epoch. */
  update(change: AddressesChange, now: number): AddressesOutcome {
    this.#now = now;
    this.#stored = new Map();
    const dirty = new Set<string>();
    let isAllDirty = false;
    if (change.releaseAfter !== undefined) this.#releaseAfter = change.releaseAfter;
    if (change.pools !== undefined) {
      this.#pools = new PoolIndex(change.pools);
      this.#ledger.setPools(this.#pools);
      isAllDirty = true;
    }
    if (change.leading !== undefined && change.leading !== this.#leading) {
      this.#leading = change.leading;
      isAllDirty = true;
    }
    for (const claim of change.claims?.upserted ?? []) this.#takeStored(claim, dirty);
    for (const name of change.claims?.removed ?? []) this.#takeRemoved(name, dirty);
    for (const [key, request] of change.requests ?? []) {
      if (request === undefined) this.#requests.delete(key);
      else this.#requests.set(key, request);
      dirty.add(key);
    }
    if (isAllDirty) {
      for (const key of this.#requests.keys()) dirty.add(key);
      for (const key of this.#ledger.services()) dirty.add(key);
    }
    const changed = this.#settle(dirty);
    return { changed, claimChanges: this.#claimChanges() };
  }

  /** undefined where the Service asks for no address. */
  assignment(key: string): Assignment | undefined {
    return this.#assignments.get(key);
  }

  assignments(): IterableIterator<Assignment> {
    return this.#assignments.values();
  }

  /** As it shall be; undefined where there shall be none of the name. */
  claim(name: string): AddressClaim | undefined {
    return this.#ledger.get(name);
  }

  claims(): IterableIterator<AddressClaim> {
    return this.#ledger.all();
  }

  /** All claims on an address, the oldest first. */
  claimsOn(address: string): readonly AddressClaim[] {
    return this.#ledger.at(address);
  }

  /** Pools that overlap, pools of a name that is taken. */
  poolProblems(): readonly Problem[] {
    return this.#pools.problems;
  }

  /** In the order in which pools are asked. */
  counts(): readonly {
    readonly pool: AddressPool;
    readonly v4: PoolCount;
    readonly v6: PoolCount;
  }[] {
    return this.#pools.pools.map((pool) => ({
      pool,
      v4: this.#ledger.count(pool, 'v4'),
      v6: this.#ledger.count(pool, 'v6'),
    }));
  }

  /** When update() has something to do by itself, milliseconds since the epoch; Infinity where it has not. */
  nextExpiry(): number {
    return this.#leading ? this.#ledger.nextExpiry() : Number.POSITIVE_INFINITY;
  }

  /** Whoever leads knows better than the store, which may lag behind; but reservations are made by users. */
  #takeStored(claim: AddressClaim, dirty: Set<string>): void {
    const known = this.#ledger.get(claim.name);
    if (known !== undefined && isSame(known, claim)) return;
    if (this.#leading && known !== undefined && !known.reserved && !claim.reserved) {
      this.#stored.set(claim.name, claim);
      return;
    }
    this.#ledger.put(claim);
    if (known !== undefined) this.#free(known);
    if (claim.reserved) this.#freed.places.add(`address ${claim.address}`);
    for (const one of known === undefined ? [claim] : [known, claim]) this.#concern(one, dirty);
  }

  /** Deleting a claim that nobody uses is how a user gives an address free; one that is in use is written again. */
  #takeRemoved(name: string, dirty: Set<string>): void {
    const known = this.#ledger.get(name);
    if (known === undefined) return;
    if (this.#leading && !known.reserved && known.heldUntil === 0) {
      this.#stored.set(name, undefined);
      return;
    }
    this.#ledger.remove(name);
    this.#free(known);
    this.#concern(known, dirty);
  }

  /** Who may be at odds with a claim that came from outside, or is no longer at odds with it. */
  #concern(claim: AddressClaim, dirty: Set<string>): void {
    const others = this.#leading || claim.reserved ? this.#ledger.at(claim.address) : [];
    for (const { service } of [claim, ...others]) if (service !== '') dirty.add(service);
  }

  /** Round after round, as long as something became free that somebody waits for. */
  #settle(dirty: ReadonlySet<string>): ReadonlySet<string> {
    const changed = new Set<string>();
    let round: Iterable<string> = dirty;
    for (let isFirst = true; ; isFirst = false) {
      const keys = this.#inOrder(round);
      if (this.#leading) {
        // Claims before anything new; then who has an address already, who asks for a certain one, and all others.
        for (const key of keys) this.#eraseLosers(key);
        for (const key of keys) this.#attend(key);
        if (isFirst) for (const claim of this.#ledger.expired(this.#now)) this.#erase(claim);
        for (const key of keys) this.#adopt(key);
        for (const key of keys) if (this.#isParticular(key)) this.#acquire(key);
        for (const key of keys) if (!this.#isParticular(key)) this.#acquire(key);
      }
      for (const key of keys) if (this.#conclude(key)) changed.add(key);
      const woken = this.#woken();
      if (woken.size === 0) return changed;
      round = woken;
    }
  }

  #inOrder(keys: Iterable<string>): readonly string[] {
    const asked = [...keys].map((key) => ({
      key,
      created: this.#requests.get(key)?.created ?? Number.POSITIVE_INFINITY,
    }));
    return asked.sort(byAge).map(({ key }) => key);
  }

  /** Two claims on the same can only come from a store that somebody else has written to. */
  #eraseLosers(key: string): void {
    for (const claim of this.#ledger.ofService(key)) {
      if (this.#ledger.hasOlderRival(claim)) this.#erase(claim);
    }
  }

  /** Keeps, takes back or lets go what the Service has claims on. */
  #attend(key: string): void {
    const request = this.#requests.get(key);
    const kept = request === undefined ? [] : this.#keptClaims(request);
    for (const claim of this.#ledger.ofService(key)) {
      if (claim.heldUntil === 0 && !kept.includes(claim)) this.#hold(claim);
    }
    if (request === undefined) return;
    for (const claim of kept) this.#refresh(claim, request);
    this.#takeBack(request);
  }

  /** Of those in use, one per family that is wanted: the one asked for, else the oldest. */
  #keptClaims(request: AddressRequest): readonly AddressClaim[] {
    const inUse = this.#ledger.ofService(request.key).filter(({ heldUntil }) => heldUntil === 0);
    const kept = request.families.flatMap((family) => {
      const ofFamily = inUse.filter((claim) => claim.family === family);
      return ofFamily.find((claim) => isGiven(request, claim)) ?? ofFamily[0] ?? [];
    });
    return request.need === 'one' ? kept.slice(0, 1) : kept;
  }

  /** A Service that is there again gets what was kept for it, unless it asks for something else by now. */
  #takeBack(request: AddressRequest): void {
    for (const family of this.#missing(request)) {
      if (request.need === 'one' && this.#inUse(request.key).length > 0) return;
      const given = request.given.find((one) => one.family === family);
      const back = this.#ledger
        .ofService(request.key)
        .find(
          (claim) =>
            claim.heldUntil !== 0 &&
            claim.family === family &&
            (given === undefined || given.address === claim.address) &&
            this.#mayReturn(claim, request),
        );
      if (back === undefined) continue;
      for (const claim of this.#inUse(request.key)) if (claim.family === family) this.#hold(claim);
      this.#refresh(back, request);
    }
  }

  #mayReturn(claim: AddressClaim, request: AddressRequest): boolean {
    const pool = this.#pools.ownerOf(claim.address);
    if (pool === undefined) return false;
    const wish = wishOf(request, pool);
    if (this.#ledger.isReservedFor(claim.address, wish)) return true;
    for (const other of this.#ledger.blockers(claim.address, wish)) if (other.reserved) return false;
    return !pool.draining && whyNotAllowed(pool, request) === undefined;
  }

  /** Brings a claim to what the Service asks for now, as far as those it shares the address with leave it. */
  #refresh(claim: AddressClaim, request: AddressRequest): void {
    const wish = wishOf(request, this.#pools.ownerOf(claim.address));
    const blockers = [...this.#ledger.blockers(claim.address, wish)].filter(({ reserved }) => !reserved);
    const { uid: serviceUID } = request;
    if (blockers.length === 0) {
      const { sharingKey, ports } = wish;
      this.#write({ ...claim, sharingKey, ports, serviceUID, heldUntil: 0 });
      return;
    }
    const others = new Set<string>();
    for (const other of this.#ledger.at(claim.address)) {
      if (other.service !== claim.service) for (const port of other.ports) others.add(portText(port));
    }
    const granted = request.ports.filter((port) => !others.has(portText(port)));
    const ports = claim.ports.length > 0 && granted.length > 0 ? granted : claim.ports;
    this.#write({ ...claim, ports, serviceUID, heldUntil: 0 });
  }

  #adopt(key: string): void {
    const request = this.#requests.get(key);
    if (request === undefined || request.statusIPs.length === 0) return;
    for (const family of this.#missing(request)) {
      const found = findInStatus(request, family, this.#pools, this.#ledger);
      if (found === undefined) continue;
      this.#take(request, family, found.address, found.pool);
      if (request.need === 'one') return;
    }
  }

  /** Asks for certain addresses, or has some reserved. */
  #isParticular(key: string): boolean {
    const given = this.#requests.get(key)?.given ?? [];
    return given.length > 0 || this.#ledger.reservationsFor(key).length > 0;
  }

  /** Takes what the Service lacks, and notes what it has to wait for. */
  #acquire(key: string): void {
    const request = this.#requests.get(key);
    if (request === undefined) return;
    const found: { family: Family; found: Found & { kind: 'found' } }[] = [];
    let isShort = false;
    for (const family of this.#missing(request)) {
      const preferred = found[0]?.found.pool ?? this.#poolInUse(key);
      const one = findAddress(request, family, this.#pools, this.#ledger, preferred);
      if (one.kind === 'found') found.push({ family, found: one });
      else isShort = true;
      if (one.kind === 'found' && request.need === 'one') break;
    }
    if (isShort && request.need === 'all') return;
    for (const { family, found: one } of found) {
      for (const claim of one.evicted) this.#erase(claim);
      this.#take(request, family, one.address, one.pool);
    }
  }

  /** The families for which the Service has no address, or not the one that it asks for. */
  #missing(request: AddressRequest): readonly Family[] {
    const inUse = this.#inUse(request.key);
    if (request.need === 'nothing' || (request.need === 'one' && inUse.length > 0)) return [];
    return request.families.filter((family) => {
      const current = inUse.find((claim) => claim.family === family);
      const given = request.given.find((one) => one.family === family);
      return current === undefined || (given !== undefined && given.address !== current.address);
    });
  }

  #inUse(key: string): readonly AddressClaim[] {
    return this.#ledger.ofService(key).filter(({ heldUntil }) => heldUntil === 0);
  }

  #poolInUse(key: string): AddressPool | undefined {
    const [claim] = this.#inUse(key);
    return claim && this.#pools.ownerOf(claim.address);
  }

  #take(request: AddressRequest, family: Family, address: string, pool: AddressPool): void {
    const { sharingKey, ports } = wishOf(request, pool);
    for (const claim of this.#inUse(request.key)) if (claim.family === family) this.#hold(claim);
    const own = this.#ledger.ofService(request.key).find((claim) => claim.address === address);
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

  /** A reservation may have the name of the address, or any other. */
  #freeName(address: string, family: Family, sharingKey: string, service: string): string {
    const whole = wholeClaimName(address, family);
    if (sharingKey === '' && this.#ledger.get(whole) === undefined) return whole;
    const shared = sharedClaimName(address, family, service);
    let name = shared;
    for (let i = 2; this.#ledger.get(name) !== undefined; i++) name = `${shared}.${i}`;
    return name;
  }

  #hold(claim: AddressClaim): void {
    if (this.#releaseAfter <= 0) this.#erase(claim);
    else this.#write({ ...claim, heldUntil: this.#now + this.#releaseAfter });
  }

  #write(claim: AddressClaim): void {
    const before = this.#ledger.get(claim.name);
    if (before !== undefined && isSame(before, claim)) return;
    if (!this.#stored.has(claim.name)) this.#stored.set(claim.name, before);
    this.#ledger.put(claim);
    if (before !== undefined) this.#free(before);
    const { sharingKey } = claim;
    if (sharingKey !== '' && sharingKey !== before?.sharingKey) this.#freed.places.add(`key ${sharingKey}`);
  }

  #erase(claim: AddressClaim): void {
    if (!this.#stored.has(claim.name)) this.#stored.set(claim.name, claim);
    this.#ledger.remove(claim.name);
    this.#free(claim);
  }

  /** Part of what the claim had may be free now, or all of it. */
  #free({ address, family, sharingKey }: AddressClaim): void {
    this.#freed.places.add(`address ${address}`);
    if (sharingKey !== '') this.#freed.places.add(`key ${sharingKey}`);
    const pool = this.#ledger.isUnclaimed(address) ? this.#pools.ownerOf(address) : undefined;
    if (pool !== undefined)
      this.#freed.pools.set(`pool ${family} ${pool.name}`, { pool, family, tried: new Set() });
  }

  /** Who waits for what became free; of those who wait for a pool, as long as it has something left. */
  #woken(): ReadonlySet<string> {
    const woken = new Set(this.#again);
    this.#again.clear();
    if (!this.#leading) {
      woken.clear();
      this.#freed.places.clear();
      this.#freed.pools.clear();
      return woken;
    }
    for (const place of this.#freed.places) for (const key of this.#waiting.at(place)) woken.add(key);
    this.#freed.places.clear();
    for (const [place, { pool, family, tried }] of this.#freed.pools) {
      const isEmpty = this.#ledger.count(pool, family).free === 0n;
      const waiters = isEmpty ? [] : this.#waiting.at(place).filter((key) => !tried.has(key));
      if (waiters.length === 0) this.#freed.pools.delete(place);
      for (const key of waiters.slice(0, AT_ONCE)) {
        tried.add(key);
        woken.add(key);
      }
    }
    return woken;
  }

  /** Says what the Service has and lacks now; true where that differs. */
  #conclude(key: string): boolean {
    const before = this.#assignments.get(key);
    const request = this.#requests.get(key);
    if (request === undefined) {
      this.#waiting.set(key, 0, []);
      this.#assignments.delete(key);
      return before !== undefined;
    }
    const inUse = this.#inUse(key);
    const lacks = this.#missing(request).map((family) =>
      findAddress(request, family, this.#pools, this.#ledger, this.#poolInUse(key)),
    );
    const { assignment, waitFor } = assignmentOf(
      request,
      inUse,
      lacks,
      this.#pools,
      this.#ledger,
      this.#leading,
    );
    this.#waiting.set(key, request.created, this.#leading ? waitFor : []);
    // Another Service of the round let go of it after this one's turn.
    const isThere = ({ kind }: Found) => kind === 'found';
    if (lacks.length > 0 && (request.need === 'all' ? lacks.every(isThere) : lacks.some(isThere)))
      this.#again.add(key);
    if (before !== undefined && isSame(before, assignment)) return false;
    this.#assignments.set(key, assignment);
    return true;
  }

  #claimChanges(): readonly ClaimChange[] {
    const changes: ClaimChange[] = [];
    for (const [name, before] of this.#stored) {
      const claim = this.#ledger.get(name);
      if (claim !== undefined && before === undefined) changes.push({ kind: 'create', claim });
      else if (claim === undefined && before !== undefined) changes.push({ kind: 'delete', claim: before });
      else if (claim !== undefined && before !== undefined && !isSame(claim, before))
        changes.push({ kind: 'update', claim });
    }
    return changes.sort((a, b) => (a.claim.name < b.claim.name ? -1 : 1));
  }
}

interface FreedPool {
  readonly pool: AddressPool;
  readonly family: Family;
  /** Who has been looked at since. */
  readonly tried: Set<string>;
}

function isGiven(request: AddressRequest, { address }: AddressClaim): boolean {
  return request.given.some((one) => one.address === address);
}

/** Of plain values made by one and the same literal. */
function isSame(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
