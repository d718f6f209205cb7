// Gives addresses of the pools to Services: first the claims that there are, then new ones. The leader decides; the other
// hosts follow its claims or, if they cannot see these, the statuses of Services. Pure: takes changes and the time, gives
// the claims to write and the Services whose addresses have changed. The work is proportional to the change.

import { sameValue } from '../base/same-value.ts';
import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import { toLocal } from '../kubernetes/public-addresses.ts';
import type { Family, OwnerKey, Problem } from '../model/load-balancer.ts';
import { type Assignment, assignmentOf } from './assignment.ts';
import { ClaimBook, type ClaimChange, type Holder } from './claim-book.ts';
import type { NeverGiven, PoolCount } from './claim-index.ts';
import { exchange } from './exchange.ts';
import type { Found } from './find-address.ts';
import { PoolIndex } from './pool-index.ts';
import type { AddressRequest } from './request.ts';
import {
  acquire,
  adoptStatuses,
  eraseAll,
  eraseLosers,
  findMissing,
  isParticular,
  reviewClaims,
} from './service-claims.ts';
import { followStatus } from './status-addresses.ts';
import { byAge, Waiting } from './waiting.ts';

export type { AddressClaim, AddressPool, AddressRequest, Assignment, ClaimChange, Holder };

export interface AddressesChange {
  /** All pools. */
  readonly pools?: readonly AddressPool[];
  /** undefined: the Service requests nothing, or is gone. */
  readonly requests?: Iterable<readonly [key: string, request: AddressRequest | undefined]>;
  /** Changes of the store; `removed` are names. */
  readonly claims?: {
    readonly upserted?: readonly AddressClaim[];
    readonly removed?: readonly string[];
    /** Found in the store when this host was about to create claims of these names; they count even against the leader. */
    readonly overruling?: readonly AddressClaim[];
  };
  /** Name of a claim → the public address that the provisioner has answered. */
  readonly answers?: ReadonlyMap<string, string>;
  /** This host decides. Only after all pools, Services and claims are read: an unknown claim counts as free. */
  readonly leading?: boolean;
  /** This host cannot see the leader's claims: the statuses of Services overrule its own. Default false. */
  readonly byStatus?: boolean;
  /** Milliseconds for which an address is kept for a Service that is gone. */
  readonly releaseAfter?: number;
}

export interface AddressesOutcome {
  /** Services whose assignment has changed. */
  readonly changed: ReadonlySet<string>;
  /** Sorted by name; none on a host that follows. */
  readonly claimChanges: readonly ClaimChange[];
}

export interface CountedPool extends Record<Family, PoolCount> {
  readonly pool: AddressPool;
}

const NONE: NeverGiven = new Map();

/** So many Services that wait for a pool try it before its free addresses are counted again. */
const BATCH_SIZE = 64;

export class Addresses {
  readonly #book: ClaimBook;
  readonly #isReleased: (owner: OwnerKey) => boolean;
  readonly #requests = new Map<string, AddressRequest>();
  readonly #assignments = new Map<string, Assignment>();
  readonly #waiting = new Waiting();
  /** Services to decide again in this update. */
  readonly #again = new Set<string>();
  #leading = false;
  #byStatus = false;

  /**
   * `neverGiven`: the addresses whose holder does not give way. `isReleased`: nothing is held for this owner, which requests
   * nothing.
   */
  constructor(
    holderOf: (address: string) => Holder | undefined = () => undefined,
    neverGiven: () => NeverGiven = () => NONE,
    isReleased: (owner: OwnerKey) => boolean = () => false,
  ) {
    this.#book = new ClaimBook(holderOf, neverGiven);
    this.#isReleased = isReleased;
  }

  /** `now` in milliseconds since the epoch. */
  update(change: AddressesChange, now: number): AddressesOutcome {
    const steps = this.steps(change, now);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  }

  /** As update(), but in very short steps. The next update must not begin before the last step. */
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
    for (const [name, address] of change.answers ?? []) this.#book.answered(name, address, dirty);
    for (const [key, request] of change.requests ?? []) {
      if (request === undefined) this.#requests.delete(key);
      else this.#requests.set(key, request);
      dirty.add(key);
      yield;
    }
    if (isAllDirty) {
      for (const key of this.#requests.keys()) dirty.add(key);
      for (const key of this.#book.index.services()) dirty.add(key);
    }
    const changed = yield* this.#settle(dirty, now);
    return { changed, claimChanges: yield* this.#book.changes() };
  }

  /** undefined if the Service requests no address. */
  assignment(key: string): Assignment | undefined {
    return this.#assignments.get(key);
  }

  assignments(): IterableIterator<Assignment> {
    return this.#assignments.values();
  }

  /** The desired claim of this name; undefined for none. */
  claim(name: string): AddressClaim | undefined {
    return this.#book.index.get(name);
  }

  /** Including those that are kept for a Service that is gone; the oldest first. */
  claimsOf(key: string): readonly AddressClaim[] {
    return this.#book.index.ofService(key);
  }

  claims(): IterableIterator<AddressClaim> {
    return this.#book.index.all();
  }

  /** All claims on an address, the oldest first. */
  claimsOn(address: string): readonly AddressClaim[] {
    return this.#book.index.at(address);
  }

  poolOf(address: string): AddressPool | undefined {
    return this.#book.pools.ownerOf(address);
  }

  /** The address of a pool that an address in a status stands for; itself if it is no public address of a pool. */
  localOf(address: string): string {
    const { pools, index } = this.#book;
    if (pools.ownerOf(address) !== undefined) return address;
    const [claim] = index.withPublic(address);
    if (claim !== undefined) return claim.address;
    for (const pool of pools.withPublic) {
      const local = toLocal(pool.public, address);
      if (local !== undefined) return local;
    }
    return address;
  }

  /** Claims with this public address. */
  withPublic(address: string): readonly AddressClaim[] {
    return this.#book.index.withPublic(address);
  }

  /** A pool is for namespaces with certain labels. */
  get selectsNamespaces(): boolean {
    return this.#book.pools.all.some(({ allowed }) => allowed?.namespaceSelector !== undefined);
  }

  /** Pools that overlap, pools with the same name, and pools with addresses of Nodes or pods. */
  poolProblems(): readonly Problem[] {
    const { index, pools, passedOver, holderOf } = this.#book;
    const inUse = (name: string, message: string): Problem => ({
      object: `AddressPool ${name}`,
      reason: 'AddressInUse',
      message,
    });
    const ofNodes = pools.all.flatMap((pool): readonly Problem[] => {
      const [first = '', ...more] = index.neverGivenOf(pool);
      if (first === '') return [];
      const others = more.length === 0 ? '' : `; the pool has addresses of Nodes besides it: ${more.length}`;
      const holder = holderOf(first)?.name ?? 'a Node';
      return [inUse(pool.name, `${first} is not given out, because it is the address of ${holder}${others}`)];
    });
    const ofEndpoints = [...passedOver].flatMap(([{ name }, address]): readonly Problem[] => {
      const holder = holderOf(address);
      if (holder?.givesWay !== true) return [];
      const when = 'given out only if no other one is free';
      return [inUse(name, `${address} is ${when}, because it is the address of ${holder.name}`)];
    });
    const ofRules = pools.all.flatMap(({ name, allowed }): readonly Problem[] =>
      allowed === undefined || allowed.fault === ''
        ? []
        : [
            {
              object: `AddressPool ${name}`,
              reason: 'InvalidObject',
              message: `It gives nothing new: spec.${allowed.fault}`,
            },
          ],
    );
    return [...pools.problems, ...ofRules, ...ofNodes, ...ofEndpoints];
  }

  countOf(name: string): CountedPool | undefined {
    const pool = this.#book.pools.byName(name);
    return pool && this.#count(pool);
  }

  /** In the order of precedence. */
  counts(): readonly CountedPool[] {
    return this.#book.pools.all.map((pool) => this.#count(pool));
  }

  #count(pool: AddressPool): CountedPool {
    const { index } = this.#book;
    return { pool, v4: index.count(pool, 'v4'), v6: index.count(pool, 'v6') };
  }

  /** When an update without changes is due, milliseconds since the epoch; Infinity for never. */
  nextExpiry(): number {
    return this.#decidesAny ? this.#book.index.nextExpiry() : Number.POSITIVE_INFINITY;
  }

  /** Repeats while something became free that a Service waits for. */
  *#settle(dirty: ReadonlySet<string>, now: number): Generator<void, ReadonlySet<string>> {
    const changed = new Set<string>();
    let round: Iterable<string> = dirty;
    for (let isFirst = true; ; isFirst = false) {
      const keys = this.#inOrder(round);
      if (this.#byStatus && isFirst) yield* each(keys, (key) => this.#follow(key));
      if (this.#decidesAny) {
        // Claims come before anything new; then addresses of statuses, requests for a certain address, and all others.
        const book = this.#book;
        yield* each(keys, (key) => this.#isReleased(key) && eraseAll(key, book));
        yield* each(keys, (key) => eraseLosers(key, book));
        yield* each(keys, (key) => reviewClaims(key, this.#requests.get(key), book, this.#decides(key)));
        if (isFirst) yield* each(book.index.expired(now), (claim) => book.erase(claim));
        const open = keys.filter((key) => this.#decides(key)).flatMap((key) => this.#requests.get(key) ?? []);
        yield* each(open, (request) => adoptStatuses(request, book, this.#requests));
        const particular = new Set(open.filter((request) => isParticular(request, book)));
        yield* each(particular, (request) => acquire(request, book));
        yield* each(particular, (request) => this.#exchange(request));
        yield* each(open, (request) => particular.has(request) || acquire(request, book));
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

  /** This host decides at least releases and Services of manifests, even under another leader. */
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

  #exchange(request: AddressRequest): void {
    const decides = (key: string): boolean => this.#decides(key);
    for (const key of exchange(request, this.#book, this.#requests, decides)) this.#again.add(key);
  }

  /** The Services that wait for what became free; for a pool only while it has free addresses. */
  #woken(): ReadonlySet<string> {
    const woken = new Set(this.#again);
    this.#again.clear();
    if (!this.#decidesAny) {
      woken.clear();
      this.#book.freedPlaces.clear();
      this.#book.freedPools.clear();
      this.#book.heldPools.clear();
      return woken;
    }
    for (const place of this.#book.freedPlaces) for (const key of this.#waiting.at(place)) woken.add(key);
    this.#book.freedPlaces.clear();
    for (const place of this.#book.heldPools)
      for (const key of this.#waiting.at(place).slice(0, BATCH_SIZE)) woken.add(key);
    this.#book.heldPools.clear();
    for (const [place, { pool, family, tried }] of this.#book.freedPools) {
      const isEmpty = this.#book.index.count(pool, family).free === 0n;
      const waiters = isEmpty ? [] : this.#waiting.at(place).filter((key) => !tried.has(key));
      if (waiters.length === 0) this.#book.freedPools.delete(place);
      for (const key of waiters.slice(0, BATCH_SIZE)) {
        tried.add(key);
        woken.add(key);
      }
    }
    return woken;
  }

  /** Updates the assignment of the Service; true if it has changed. */
  #conclude(key: string): boolean {
    const before = this.#assignments.get(key);
    const request = this.#requests.get(key);
    if (request === undefined) {
      this.#waiting.set(key, 0, []);
      this.#assignments.delete(key);
      return before !== undefined;
    }
    const inUse = this.#book.inUse(key);
    const lacks = findMissing(request, this.#book);
    const decides = this.#decides(key);
    const { assignment, waitFor } = assignmentOf(request, inUse, lacks, this.#book, decides);
    this.#waiting.set(key, request.created, decides ? waitFor : []);
    // Another Service of the round has released the address after this Service's turn.
    const isThere = ({ kind }: Found) => kind === 'found';
    if (decides && lacks.length > 0 && (request.need === 'all' ? lacks.every(isThere) : lacks.some(isThere)))
      this.#again.add(key);
    if (before !== undefined && sameValue(before, assignment)) return false;
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
