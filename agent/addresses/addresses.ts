// Gives addresses of the pools to Services and keeps what it has given: claims first, then what is new.
// One host leads and decides; the others follow the claims it writes or, where no other host can see them, the statuses of
// Services. Pure: takes changes and the time, gives the claims to write and the Services whose addresses differ; the work
// is proportional to the change.

import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family, Problem } from '../model/load-balancer.ts';
import { type Assignment, assignmentOf } from './assignment.ts';
import { ClaimBook, type ClaimChange } from './claim-book.ts';
import type { PoolCount } from './claim-index.ts';
import { type Found, findAddress, findInStatus, wishOf } from './find-address.ts';
import { findSharedInStatus } from './find-shared-in-status.ts';
import { followStatus } from './follow-status.ts';
import { PoolIndex } from './pool-index.ts';
import { whyNotAllowed } from './pool-rules.ts';
import type { AddressRequest } from './request.ts';
import { sameRecord } from './same-record.ts';
import { byAge, Waiting } from './waiting.ts';

export type { AssignedAddress, Assignment } from './assignment.ts';
export { type ClaimChange, RELEASE_AFTER } from './claim-book.ts';
export { addressRequest } from './request.ts';
export { sameRecord } from './same-record.ts';
export type { AddressClaim, AddressPool, AddressRequest };

export interface AddressesChange {
  /** All of them. */
  readonly pools?: readonly AddressPool[];
  /** What Services ask for now; undefined: nothing, or there is no such Service. */
  readonly requests?: Iterable<readonly [key: string, request: AddressRequest | undefined]>;
  /** What the store of claims has; `removed` are names. */
  readonly claims?: {
    readonly upserted?: readonly AddressClaim[];
    readonly removed?: readonly string[];
    /** Were in the store when this host was about to make claims of these names: they hold, whoever leads. */
    readonly overruling?: readonly AddressClaim[];
  };
  /** Whether this host decides. Only once all pools, Services and claims are known: what is unknown counts as free. */
  readonly leading?: boolean;
  /**
   * No other host sees the claims of the one that leads: what it has given is what the statuses of Services show, which
   * overrules what is known here. Default false.
   */
  readonly byStatus?: boolean;
  /** Milliseconds for which an address is kept for a Service that is gone. */
  readonly releaseAfter?: number;
}

export interface AddressesOutcome {
  /** Services whose assignment differs. */
  readonly changed: ReadonlySet<string>;
  /** By name; nothing on a host that follows. */
  readonly claimChanges: readonly ClaimChange[];
}

/** How many of those who wait for a pool are looked at before the next look at what is left of it. */
const AT_ONCE = 64;

export class Addresses {
  readonly #book = new ClaimBook();
  readonly #requests = new Map<string, AddressRequest>();
  readonly #assignments = new Map<string, Assignment>();
  readonly #waiting = new Waiting();
  /** Services that have to be looked at again in the update under way. */
  readonly #again = new Set<string>();
  #leading = false;
  #byStatus = false;

  /** `now` in milliseconds since the epoch. */
  update(change: AddressesChange, now: number): AddressesOutcome {
    const steps = this.steps(change, now);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  }

  /** As update(), but in steps that take next to no time each. No other update may begin before the last of them. */
  *steps(change: AddressesChange, now: number): Generator<void, AddressesOutcome> {
    this.#book.begin(now);
    const { byStatus = false } = change;
    const dirty = new Set<string>();
    let isAllDirty = byStatus && !this.#byStatus;
    this.#byStatus = byStatus;
    if (change.releaseAfter !== undefined) this.#book.releaseAfter = change.releaseAfter;
    if (change.pools !== undefined) {
      this.#book.pools = new PoolIndex(change.pools);
      isAllDirty = true;
    }
    if (change.leading !== undefined && change.leading !== this.#leading) {
      this.#leading = change.leading;
      isAllDirty = true;
    }
    for (const claim of change.claims?.upserted ?? []) {
      this.#book.takeStored(claim, this.#leading, dirty);
      yield;
    }
    for (const claim of change.claims?.overruling ?? []) this.#book.takeStored(claim, false, dirty);
    for (const name of change.claims?.removed ?? []) {
      this.#book.takeRemoved(name, this.#leading, dirty);
      yield;
    }
    for (const [key, request] of change.requests ?? []) {
      if (request === undefined) this.#requests.delete(key);
      else this.#requests.set(key, request);
      dirty.add(key);
      yield;
    }
    if (isAllDirty) {
      for (const key of this.#requests.keys()) dirty.add(key);
      for (const key of this.#book.ledger.services()) dirty.add(key);
    }
    const changed = yield* this.#settle(dirty, now);
    return { changed, claimChanges: yield* this.#book.changes() };
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
    return this.#book.ledger.get(name);
  }

  /** Of a Service, those that are kept for it among them; the oldest first. */
  claimsOf(key: string): readonly AddressClaim[] {
    return this.#book.ledger.ofService(key);
  }

  claims(): IterableIterator<AddressClaim> {
    return this.#book.ledger.all();
  }

  /** All claims on an address, the oldest first. */
  claimsOn(address: string): readonly AddressClaim[] {
    return this.#book.ledger.at(address);
  }

  /** Whose the address is. */
  poolOf(address: string): AddressPool | undefined {
    return this.#book.pools.ownerOf(address);
  }

  /** Pools that overlap, pools of a name that is taken. */
  poolProblems(): readonly Problem[] {
    return this.#book.pools.problems;
  }

  countOf(name: string): ReturnType<Addresses['counts']>[number] | undefined {
    const pool = this.#book.pools.byName(name);
    return pool && { pool, v4: this.#book.ledger.count(pool, 'v4'), v6: this.#book.ledger.count(pool, 'v6') };
  }

  /** In the order in which pools are asked. */
  counts(): readonly {
    readonly pool: AddressPool;
    readonly v4: PoolCount;
    readonly v6: PoolCount;
  }[] {
    return this.#book.pools.pools.map((pool) => ({
      pool,
      v4: this.#book.ledger.count(pool, 'v4'),
      v6: this.#book.ledger.count(pool, 'v6'),
    }));
  }

  /** When update() has something to do by itself, milliseconds since the epoch; Infinity where it has not. */
  nextExpiry(): number {
    return this.#decidesAny ? this.#book.ledger.nextExpiry() : Number.POSITIVE_INFINITY;
  }

  /** Round after round, as long as something became free that somebody waits for. */
  *#settle(dirty: ReadonlySet<string>, now: number): Generator<void, ReadonlySet<string>> {
    const changed = new Set<string>();
    let round: Iterable<string> = dirty;
    for (let isFirst = true; ; isFirst = false) {
      const keys = this.#inOrder(round);
      if (this.#byStatus && isFirst) yield* each(keys, (key) => this.#follow(key));
      if (this.#decidesAny) {
        // Claims before anything new; then who has an address already, who asks for a certain one, and all others.
        yield* each(keys, (key) => this.#eraseLosers(key));
        yield* each(keys, (key) => this.#attend(key));
        if (isFirst) yield* each(this.#book.ledger.expired(now), (claim) => this.#book.erase(claim));
        const open = keys.filter((key) => this.#decides(key));
        yield* each(open, (key) => this.#adopt(key));
        const particular = new Set(open.filter((key) => this.#isParticular(key)));
        yield* each(particular, (key) => this.#acquire(key));
        yield* each(open, (key) => particular.has(key) || this.#acquire(key));
      }
      yield* each(keys, (key) => this.#conclude(key) && changed.add(key));
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

  /** Whether anything is decided here: what is let go of, and for Services of manifests, also where another host leads. */
  get #decidesAny(): boolean {
    return this.#leading || this.#byStatus;
  }

  #decides(key: string): boolean {
    return this.#leading || (this.#byStatus && this.#requests.get(key)?.isLocal === true);
  }

  #follow(key: string): void {
    const request = this.#requests.get(key);
    if (request === undefined || request.isLocal) return;
    for (const loser of followStatus(request, this.#book, this.#requests)) this.#again.add(loser);
  }

  /** Two claims on the same can only come from a store that somebody else has written to. */
  #eraseLosers(key: string): void {
    for (const claim of this.#book.ledger.ofService(key)) {
      if (this.#book.ledger.hasOlderRival(claim)) this.#book.erase(claim);
    }
  }

  /** Keeps, takes back or lets go what the Service has claims on. */
  #attend(key: string): void {
    const request = this.#requests.get(key);
    const kept = request === undefined ? [] : this.#keptClaims(request);
    for (const claim of this.#book.ledger.ofService(key)) {
      if (claim.heldUntil === 0 && !kept.includes(claim)) this.#book.hold(claim);
    }
    if (request === undefined) return;
    for (const claim of kept) this.#book.refresh(claim, request);
    if (this.#decides(key)) this.#takeBack(request);
  }

  /** Of those in use, one per family that is wanted: the one asked for, else the oldest. */
  #keptClaims(request: AddressRequest): readonly AddressClaim[] {
    const inUse = this.#book.inUse(request.key);
    const kept = request.families.flatMap((family) => {
      const ofFamily = inUse.filter((claim) => claim.family === family);
      return ofFamily.find((claim) => isGiven(request, claim)) ?? ofFamily[0] ?? [];
    });
    return request.need === 'one' ? kept.slice(0, 1) : kept;
  }

  /** A Service that is there again gets what was kept for it, unless it asks for something else by now. */
  #takeBack(request: AddressRequest): void {
    for (const family of this.#missing(request)) {
      if (request.need === 'one' && this.#book.inUse(request.key).length > 0) return;
      const given = request.given.find((one) => one.family === family);
      const back = this.#book.ledger
        .ofService(request.key)
        .find(
          (claim) =>
            claim.heldUntil !== 0 &&
            claim.family === family &&
            (given === undefined || given.address === claim.address) &&
            this.#mayReturn(claim, request),
        );
      if (back === undefined) continue;
      for (const claim of this.#book.inUse(request.key)) if (claim.family === family) this.#book.hold(claim);
      this.#book.refresh(back, request);
    }
  }

  #mayReturn(claim: AddressClaim, request: AddressRequest): boolean {
    const pool = this.#book.pools.ownerOf(claim.address);
    if (pool === undefined) return false;
    const wish = wishOf(request, pool);
    if (this.#book.ledger.isReservedFor(claim.address, wish)) return true;
    for (const other of this.#book.ledger.blockers(claim.address, wish)) if (other.reserved) return false;
    return !pool.draining && whyNotAllowed(pool, request) === undefined;
  }

  #adopt(key: string): void {
    const request = this.#requests.get(key);
    if (request === undefined || request.statusIPs.length === 0) return;
    const { pools, ledger } = this.#book;
    for (const family of this.#missing(request)) {
      const whole = findInStatus(request, family, pools, ledger);
      const found = whole ?? findSharedInStatus(request, family, this.#book, this.#requests);
      if (found === undefined) continue;
      if (whole === undefined) this.#book.narrow(found.address, this.#requests);
      const ports = whole === undefined ? request.ports : undefined;
      this.#book.take(request, family, found.address, found.pool, ports);
      if (request.need === 'one') return;
    }
  }

  /** Asks for certain addresses, or has some reserved. */
  #isParticular(key: string): boolean {
    const given = this.#requests.get(key)?.given ?? [];
    return given.length > 0 || this.#book.ledger.reservationsFor(key).length > 0;
  }

  /** Takes what the Service lacks, and notes what it has to wait for. */
  #acquire(key: string): void {
    const request = this.#requests.get(key);
    if (request === undefined) return;
    const found: { family: Family; found: Found & { kind: 'found' } }[] = [];
    let isShort = false;
    for (const family of this.#missing(request)) {
      const preferred = found[0]?.found.pool ?? this.#poolInUse(key);
      const one = findAddress(request, family, this.#book.pools, this.#book.ledger, preferred);
      if (one.kind === 'found') found.push({ family, found: one });
      else isShort = true;
      if (one.kind === 'found' && request.need === 'one') break;
    }
    if (isShort && request.need === 'all') return;
    for (const { family, found: one } of found) {
      for (const claim of one.evicted) this.#book.erase(claim);
      this.#book.take(request, family, one.address, one.pool);
    }
  }

  /** The families for which the Service has no address, or not the one that it asks for. */
  #missing(request: AddressRequest): readonly Family[] {
    const inUse = this.#book.inUse(request.key);
    if (request.need === 'nothing' || (request.need === 'one' && inUse.length > 0)) return [];
    return request.families.filter((family) => {
      const current = inUse.find((claim) => claim.family === family);
      const given = request.given.find((one) => one.family === family);
      return current === undefined || (given !== undefined && given.address !== current.address);
    });
  }

  #poolInUse(key: string): AddressPool | undefined {
    const [claim] = this.#book.inUse(key);
    return claim && this.#book.pools.ownerOf(claim.address);
  }

  /** Who waits for what became free; of those who wait for a pool, as long as it has something left. */
  #woken(): ReadonlySet<string> {
    const woken = new Set(this.#again);
    this.#again.clear();
    if (!this.#decidesAny) {
      woken.clear();
      this.#book.freedPlaces.clear();
      this.#book.freedPools.clear();
      return woken;
    }
    for (const place of this.#book.freedPlaces) for (const key of this.#waiting.at(place)) woken.add(key);
    this.#book.freedPlaces.clear();
    for (const [place, { pool, family, tried }] of this.#book.freedPools) {
      const isEmpty = this.#book.ledger.count(pool, family).free === 0n;
      const waiters = isEmpty ? [] : this.#waiting.at(place).filter((key) => !tried.has(key));
      if (waiters.length === 0) this.#book.freedPools.delete(place);
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
    const inUse = this.#book.inUse(key);
    const lacks = this.#missing(request).map((family) =>
      findAddress(request, family, this.#book.pools, this.#book.ledger, this.#poolInUse(key)),
    );
    const { pools, ledger } = this.#book;
    const decides = this.#decides(key);
    const { assignment, waitFor } = assignmentOf(request, inUse, lacks, pools, ledger, decides);
    this.#waiting.set(key, request.created, decides ? waitFor : []);
    // Another Service of the round let go of it after this one's turn.
    const isThere = ({ kind }: Found) => kind === 'found';
    if (decides && lacks.length > 0 && (request.need === 'all' ? lacks.every(isThere) : lacks.some(isThere)))
      this.#again.add(key);
    if (before !== undefined && sameRecord(before, assignment)) return false;
    this.#assignments.set(key, assignment);
    return true;
  }
}

function* each<T>(items: Iterable<T>, step: (item: T) => unknown): Generator<void, void> {
  for (const item of items) {
    step(item);
    yield;
  }
}

function isGiven(request: AddressRequest, { address }: AddressClaim): boolean {
  return request.given.some((one) => one.address === address);
}
