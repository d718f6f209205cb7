// The decisions on one Service: which of its claims it keeps, takes back or releases, and which new ones it gets. Changes
// the claim book only.

import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family } from '../model/load-balancer.ts';
import type { ClaimBook } from './claim-book.ts';
import { type Found, findAddress } from './find-address.ts';
import { whyNoMore } from './namespace-limit.ts';
import { whyNotNew } from './pool-rules.ts';
import { type AddressRequest, wishOf } from './request.ts';
import { adoptStatus } from './status-addresses.ts';

/** Also claims that are held; reservations are the users'. */
export function eraseAll(key: string, book: ClaimBook): void {
  for (const claim of book.index.ofService(key)) if (!claim.reserved) book.erase(claim);
}

/** Two claims on the same ports can only come from another writer to the store. */
export function eraseLosers(key: string, book: ClaimBook): void {
  for (const claim of book.index.ofService(key)) if (book.index.hasOlderRival(claim)) book.erase(claim);
}

/** Keeps and releases claims; takes back those that were kept for the Service only if this host decides on it. */
export function reviewClaims(
  key: string,
  request: AddressRequest | undefined,
  book: ClaimBook,
  decides: boolean,
): void {
  const kept = request === undefined ? [] : keptClaims(request, book);
  for (const claim of book.inUse(key)) if (!kept.includes(claim)) book.hold(claim);
  if (request === undefined) return;
  for (const claim of kept) book.refresh(claim, request);
  if (decides) takeBack(request, book);
}

/** Takes the addresses that the Service's status shows, for the families that it lacks. */
export function adoptStatuses(
  request: AddressRequest,
  book: ClaimBook,
  requests: ReadonlyMap<string, AddressRequest>,
): void {
  if (request.statusIPs.length === 0) return;
  for (const family of missingFamilies(request, book))
    if (adoptStatus(request, family, book, requests) && request.need === 'one') return;
}

/** The Service names an address, or has a reservation. */
export function isParticular(request: AddressRequest, book: ClaimBook): boolean {
  return request.given.length > 0 || book.index.reservationsFor(request.key).length > 0;
}

/** Takes the addresses that the Service lacks. */
export function acquire(request: AddressRequest, book: ClaimBook): void {
  const taken: { readonly family: Family; readonly one: Found & { kind: 'found' } }[] = [];
  let isShort = false;
  for (const family of missingFamilies(request, book)) {
    const preferred = taken[0]?.one.pool ?? poolInUse(request, book);
    const one = findAddress(
      request,
      family,
      book,
      preferred,
      taken.map(({ one: { pool } }) => pool),
    );
    if (one.kind === 'found') taken.push({ family, one });
    else isShort = true;
    if (one.kind === 'found' && request.need === 'one') break;
  }
  if (isShort && request.need === 'all') return;
  for (const { family, one } of taken) {
    for (const claim of one.evicted) book.erase(claim);
    book.take(request, family, one.address, one.pool);
  }
}

/** What can be found now for each family that the Service lacks. */
export function findMissing(request: AddressRequest, book: ClaimBook): readonly Found[] {
  const preferred = poolInUse(request, book);
  const taken: AddressPool[] = [];
  return missingFamilies(request, book).map((family) => {
    const found = findAddress(request, family, book, taken[0] ?? preferred, taken);
    if (found.kind === 'found') taken.push(found.pool);
    return found;
  });
}

/** One claim in use for each requested family: the requested address, otherwise the oldest. */
function keptClaims(request: AddressRequest, book: ClaimBook): readonly AddressClaim[] {
  const inUse = book.inUse(request.key);
  const kept = request.families.flatMap((family) => {
    const ofFamily = inUse.filter((claim) => claim.family === family);
    const isGiven = ({ address }: AddressClaim) => request.given.some((one) => one.address === address);
    return ofFamily.find(isGiven) ?? ofFamily[0] ?? [];
  });
  return request.need === 'one' ? kept.slice(0, 1) : kept;
}

/** A Service that has come back gets the address that was kept for it, unless it requests another one. */
function takeBack(request: AddressRequest, book: ClaimBook): void {
  for (const family of missingFamilies(request, book)) {
    if (request.need === 'one' && book.inUse(request.key).length > 0) return;
    const given = request.given.find((one) => one.family === family);
    const back = book.index
      .ofService(request.key)
      .find(
        (claim) =>
          claim.heldUntil !== 0 &&
          claim.family === family &&
          (given === undefined || given.address === claim.address) &&
          mayReturn(claim, request, book),
      );
    if (back === undefined) continue;
    for (const claim of book.inUse(request.key)) if (claim.family === family) book.hold(claim);
    book.refresh(back, request);
  }
}

function mayReturn(claim: AddressClaim, request: AddressRequest, book: ClaimBook): boolean {
  const { pools, index } = book;
  const pool = pools.ownerOf(claim.address);
  if (pool === undefined) return false;
  const wish = wishOf(request, pool);
  if (index.isReservedFor(claim.address, wish)) return true;
  for (const other of index.blockers(claim.address, wish)) if (other.reserved) return false;
  if (pool.draining || whyNotNew(pool, request) !== undefined) return false;
  return whyNoMore(pool, request, claim.family, book) === undefined;
}

/** The families for which the Service has no address, or not the requested one. */
export function missingFamilies(request: AddressRequest, book: ClaimBook): readonly Family[] {
  const inUse = book.inUse(request.key);
  if (request.need === 'nothing' || (request.need === 'one' && inUse.length > 0)) return [];
  return request.families.filter((family) => {
    const current = inUse.find((claim) => claim.family === family);
    const given = request.given.find((one) => one.family === family);
    return current === undefined || (given !== undefined && given.address !== current.address);
  });
}

/** The pool of the Service's other address. */
function poolInUse({ key }: AddressRequest, book: ClaimBook): AddressPool | undefined {
  const [claim] = book.inUse(key);
  return claim && book.pools.ownerOf(claim.address);
}
