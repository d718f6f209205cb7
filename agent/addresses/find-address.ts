// Finds the address that a Service can have of one family, or the reason why there is none and what to wait for.
// Pure; every host finds the same address for the same Service.

import { createHash } from 'node:crypto';
import { addressText } from '../base/ip-range.ts';
import { quote } from '../base/quote.ts';
import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family, Problem, ProblemReason } from '../model/load-balancer.ts';
import { kindInWords, objectInWords, objectOf } from '../model/names.ts';
import type { ClaimBook } from './claim-book.ts';
import { limitPlace, whyNoMore } from './namespace-limit.ts';
import { whyNothingNew, whyNotNew } from './pool-rules.ts';
import { type AddressRequest, type FamilyAddress, namespaceOf, type Wish, wishOf } from './request.ts';

/** Pools and claims, to read. */
export type PoolsAndClaims = Pick<ClaimBook, 'pools' | 'index' | 'freedom' | 'holderOf' | 'whyNotPublic'>;

export type Found =
  | {
      readonly kind: 'found';
      readonly address: string;
      readonly pool: AddressPool;
      /** Held claims to erase. */
      readonly evicted: readonly AddressClaim[];
    }
  | {
      readonly kind: 'none';
      readonly problem: Problem;
      /** What would change the answer, as keys of Waiting. */
      readonly waitFor: readonly string[];
      /** Claims of other Services on the requested address, if nothing else is in the way. */
      readonly rivals: readonly AddressClaim[];
      /** No pool that the Service may use has the family at all. */
      readonly isHopeless: boolean;
    };

/** `preferred`: the pool of the Service's other address. `taken`: the pools of addresses that it gets besides this one. */
export function findAddress(
  request: AddressRequest,
  family: Family,
  book: PoolsAndClaims,
  preferred: AddressPool | undefined,
  taken: readonly AddressPool[] = [],
): Found {
  const given = request.given.find((one) => one.family === family);
  if (given !== undefined) return findGiven(request, given, book, taken);
  return findReserved(request, family, book) ?? findAny(request, family, book, preferred, taken);
}

function findGiven(
  request: AddressRequest,
  { address, family }: FamilyAddress,
  book: PoolsAndClaims,
  taken: readonly AddressPool[],
): Found {
  const pool = book.pools.ownerOf(address);
  const none = (
    reason: ProblemReason,
    why: string,
    waitFor: readonly string[] = [],
    rivals: readonly AddressClaim[] = [],
  ): Found => {
    const message = `Cannot give ${address}: ${why}`;
    const problem: Problem = { object: objectOf(request.key), reason, message };
    return { kind: 'none', problem, waitFor, rivals, isHopeless: false };
  };
  if (pool === undefined) return none('AddressNotInPool', 'it belongs to no address pool');
  const wish = wishOf(request, pool);
  if (!book.index.isReservedFor(address, wish)) {
    const why =
      whyNotNew(pool, request) ??
      (pool.draining ? 'is draining' : undefined) ??
      (hasPartOf(address, request, book)
        ? undefined
        : whyNoMore(pool, request, family, book, countOf(pool, taken)));
    if (why !== undefined) {
      // A reservation would permit it.
      const waitFor = [`address ${address}`, limitPlace(request.namespace, pool.name)];
      return none('AddressNotAllowed', `its pool "${pool.name}" ${why}`, waitFor);
    }
  }
  const blockers = [...book.index.blockers(address, wish)];
  const blocker = blockers.find((claim) => !givesWay(claim, request));
  if (blocker === undefined) {
    const holder = book.holderOf(address);
    if (holder?.givesWay === false) return none('AddressInUse', `it is the address of ${holder.name}`);
    return { kind: 'found', address, pool, evicted: blockers };
  }
  const mayLeave = (claim: AddressClaim) =>
    (!claim.reserved && claim.heldUntil === 0) || givesWay(claim, request);
  const rivals = blockers.every(mayLeave) ? blockers : [];
  const why = `${blockerWords(blocker, wish)}${sharingHint(blocker, wish)}`;
  return none('AddressInUse', why, [`address ${address}`], rivals);
}

/** The way out if another Service has the whole address, and the two may share it. */
function sharingHint({ reserved, heldUntil, service, ports }: AddressClaim, wish: Wish): string {
  const mayShare = wish.acrossNamespaces || namespaceOf(service) === wish.namespace;
  if (reserved || heldUntil !== 0 || ports.length > 0 || !mayShare) return '';
  return '; to share it, give both the same annotation "headgate.io/address-sharing-key"';
}

/** It is kept for a Service that is gone, and the request comes from the same namespace. */
function givesWay(claim: AddressClaim, request: AddressRequest): boolean {
  return !claim.reserved && claim.heldUntil !== 0 && namespaceOf(claim.service) === request.namespace;
}

/** Why the claim keeps other Services from the address. */
export function holderWords({ reserved, name, heldUntil, service }: AddressClaim): string {
  if (reserved) return `it is reserved (AddressClaim ${name})`;
  if (heldUntil === 0) return `${objectInWords(service)} has it`;
  return `it is kept for ${objectInWords(service)}, which had it, until ${timeText(heldUntil)}`;
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}

/** As holderWords(), on an address that may be shared. */
export function blockerWords(claim: AddressClaim, wish: Wish): string {
  if (claim.reserved || claim.heldUntil !== 0 || claim.ports.length === 0) return holderWords(claim);
  if (claim.sharingKey === '') return `${objectInWords(claim.service)} has ports of it`;
  if (claim.sharingKey !== wish.sharingKey)
    return `${objectInWords(claim.service)} has it with the sharing key "${claim.sharingKey}"`;
  if (!wish.acrossNamespaces && namespaceOf(claim.service) !== wish.namespace)
    return `${objectInWords(claim.service)} of another namespace has it with the sharing key "${claim.sharingKey}"`;
  return `${objectInWords(claim.service)} has one of the ports`;
}

/** A reservation that names the Service overrules the rules of the pools, but not the pool that the Service names. */
function findReserved(request: AddressRequest, family: Family, book: PoolsAndClaims): Found | undefined {
  for (const { address, family: other } of book.index.reservationsFor(request.key)) {
    const pool = book.pools.ownerOf(address);
    if (other !== family || pool === undefined) continue;
    if (request.pool !== undefined && request.pool !== pool.name) continue;
    if (isEmpty(book.index.blockers(address, wishOf(request, pool))))
      return { kind: 'found', address, pool, evicted: [] };
  }
  return undefined;
}

function findAny(
  request: AddressRequest,
  family: Family,
  book: PoolsAndClaims,
  preferred: AddressPool | undefined,
  taken: readonly AddressPool[],
): Found {
  const allowed = book.pools.all.filter(
    (pool) => book.pools.size(pool, family) > 0n && whyNothingNew(pool, request) === undefined,
  );
  const inOrder =
    preferred !== undefined && allowed.includes(preferred)
      ? [preferred, ...allowed.filter((pool) => pool !== preferred)]
      : allowed;
  const isBelow = (pool: AddressPool): boolean =>
    whyNoMore(pool, request, family, book, countOf(pool, taken)) === undefined;
  const below = inOrder.filter(isBelow);
  const address = sharedAddress(request, family, inOrder, book, below);
  if (address !== undefined) return { kind: 'found', ...address, evicted: [] };
  let last: Found | undefined;
  for (const pool of below) {
    const { free, givingWay } = freeAddress(request, family, pool, book);
    if (free !== undefined) return { kind: 'found', address: free, pool, evicted: [] };
    if (givingWay !== undefined) last ??= { kind: 'found', address: givingWay, pool, evicted: [] };
  }
  // A Service that there is comes before one that is gone.
  const held = book.index.firstHeld(below, family);
  const ofHeld = held && book.pools.ownerOf(held.address);
  if (held !== undefined && ofHeld !== undefined) {
    const evicted = book.index.at(held.address);
    return { kind: 'found', address: held.address, pool: ofHeld, evicted };
  }
  if (last !== undefined) return last;
  const waitFor = inOrder.map((pool) =>
    below.includes(pool) ? `pool ${family} ${pool.name}` : limitPlace(request.namespace, pool.name),
  );
  if (request.sharingKey !== '') waitFor.push(`key ${request.sharingKey}`);
  const isHopeless = inOrder.length === 0;
  return {
    kind: 'none',
    problem:
      limitProblem(request, family, inOrder, below, book) ?? pendingProblem(request, family, inOrder, book),
    waitFor,
    rivals: [],
    isHopeless,
  };
}

/** The lowest address of the first pool that is shared by the key and has the ports free. */
function sharedAddress(
  request: AddressRequest,
  family: Family,
  allowed: readonly AddressPool[],
  book: PoolsAndClaims,
  below: readonly AddressPool[],
): { readonly address: string; readonly pool: AddressPool } | undefined {
  if (request.sharingKey === '') return undefined;
  const candidates: { address: string; pool: AddressPool; rank: number }[] = [];
  for (const address of book.index.sharedBy(request.sharingKey)) {
    if (address.includes(':') !== (family === 'v6')) continue;
    const pool = book.pools.ownerOf(address);
    const rank = pool === undefined ? -1 : allowed.indexOf(pool);
    if (pool === undefined || !(below.includes(pool) || hasPartOf(address, request, book))) continue;
    if (rank >= 0) candidates.push({ address, pool, rank });
  }
  candidates.sort((a, b) => a.rank - b.rank || (a.address < b.address ? -1 : 1));
  return candidates.find(({ address, pool }) => isEmpty(book.index.blockers(address, wishOf(request, pool))));
}

/**
 * Linear probing from the hash of the Service's name, or of the group that shares the address. An address of an endpoint is
 * better than none: otherwise the author of one namespace could take a whole pool from all others by a single EndpointSlice.
 */
function freeAddress(
  request: AddressRequest,
  family: Family,
  pool: AddressPool,
  book: PoolsAndClaims,
): { readonly free?: string; readonly givingWay?: string | undefined } {
  if (book.index.count(pool, family).free === 0n) return {};
  let givingWay: string | undefined;
  for (const number of book.pools.probe(pool, family, hashOf(groupOf(request, pool)))) {
    const address = addressText(number, family);
    const freedom = book.freedom(address, pool);
    if (freedom === 'free') return { free: address };
    if (freedom === 'givingWay') givingWay ??= address;
  }
  return { givingWay };
}

function groupOf({ key, namespace, sharingKey }: AddressRequest, pool: AddressPool): string {
  if (sharingKey === '') return key;
  return pool.shareAcrossNamespaces ? `key ${sharingKey}` : `key ${namespace} ${sharingKey}`;
}

function hashOf(text: string): bigint {
  return BigInt(`0x${createHash('sha256').update(text).digest('hex').slice(0, 32)}`);
}

/** The namespace has an address of a pool already: with a part of it, it has no more addresses than before. */
function hasPartOf(address: string, { namespace }: AddressRequest, { index }: PoolsAndClaims): boolean {
  return index
    .at(address)
    .some(
      ({ service, heldUntil, reserved }) =>
        !reserved && heldUntil === 0 && namespaceOf(service) === namespace,
    );
}

function countOf(pool: AddressPool, taken: readonly AddressPool[]): number {
  return taken.filter(({ name }) => name === pool.name).length;
}

/** Each pool that is for the requester has given its namespace all that it may have. */
function limitProblem(
  request: AddressRequest,
  family: Family,
  inOrder: readonly AddressPool[],
  below: readonly AddressPool[],
  book: PoolsAndClaims,
): Problem | undefined {
  const [pool] = inOrder;
  if (pool === undefined || below.length > 0) return undefined;
  const why = whyNoMore(pool, request, family, book, Number.POSITIVE_INFINITY) ?? '';
  const message = `It has no IP${family} address yet: pool ${quote(pool.name)} ${why}`;
  return { object: objectOf(request.key), reason: 'AddressNotAllowed', message };
}

function pendingProblem(
  request: AddressRequest,
  family: Family,
  allowed: readonly AddressPool[],
  book: PoolsAndClaims,
): Problem {
  const { key, pool: name } = request;
  const pool = name === undefined ? undefined : book.pools.byName(name);
  const refusal = pool && whyNothingNew(pool, request);
  const why =
    refusal === undefined
      ? pendingWords(request, family, allowed, book)
      : `pool ${quote(pool?.name ?? '')} ${refusal}`;
  const reason = refusal === undefined ? 'AddressPending' : 'AddressNotAllowed';
  return { object: objectOf(key), reason, message: `It has no IP${family} address yet: ${why}` };
}

/** Without counts, so that the message does not change with every claim. */
function pendingWords(
  request: AddressRequest,
  family: Family,
  allowed: readonly AddressPool[],
  book: PoolsAndClaims,
): string {
  const { pool: name } = request;
  if (allowed.length > 0) {
    const names = allowed.slice(0, 3).map((pool) => quote(pool.name));
    const more = allowed.length > 3 ? ` and ${allowed.length - 3} more` : '';
    const what = request.sharingKey === '' ? 'address' : 'address, nor a shared one with the ports free';
    const places = `${allowed.length === 1 ? 'pool' : 'pools'} ${names.join(', ')}${more}`;
    return `no free ${what} in ${places}`;
  }
  if (name !== undefined) {
    return book.pools.byName(name) === undefined
      ? `there is no pool ${quote(name)}`
      : `pool ${quote(name)} has no IP${family} addresses`;
  }
  const [pool] = book.pools.all.filter((one) => book.pools.size(one, family) > 0n);
  if (pool === undefined) return `there is no pool with IP${family} addresses`;
  return `no pool is for this ${kindInWords(request.key)}: pool ${quote(pool.name)} ${whyNothingNew(pool, request) ?? 'has none'}`;
}

function isEmpty(iterable: Iterable<unknown>): boolean {
  for (const _ of iterable) return false;
  return true;
}
