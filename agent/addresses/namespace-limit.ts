// How many addresses of a pool one namespace may have: counts those that its owners use, each once. Pure.

import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family } from '../model/load-balancer.ts';
import { NO_NAMESPACE } from '../model/names.ts';
import type { ClaimIndex } from './claim-index.ts';
import type { PoolIndex } from './pool-index.ts';
import type { AddressRequest } from './request.ts';

interface Book {
  readonly pools: PoolIndex;
  readonly index: ClaimIndex;
}

/** A key of Waiting: the namespace has fewer addresses of the pool. */
export function limitPlace(namespace: string, pool: string): string {
  return `limit ${namespace} ${pool}`;
}

/** Completes `pool "a" `. `taken`: addresses of the pool that the same request gets besides it. */
export function whyNoMore(
  pool: AddressPool,
  request: AddressRequest,
  family: Family,
  book: Book,
  taken = 0,
): string | undefined {
  const most = pool.allowed?.addressesPerNamespace ?? 0;
  if (most === 0) return undefined;
  // Its own address of the family is given up for the new one.
  const stays = (claim: AddressClaim): boolean => claim.service !== request.key || claim.family !== family;
  const had = addressesOf(request.namespace, pool, book, stays).length + taken;
  return had < most ? undefined : limitWords(most, request.namespace);
}

/** As whyNoMore() for an address that the namespace has, if it is beyond the number: the oldest ones count first. */
export function whyBeyond(
  pool: AddressPool,
  { namespace }: Pick<AddressRequest, 'namespace'>,
  address: string,
  book: Book,
): string | undefined {
  const most = pool.allowed?.addressesPerNamespace ?? 0;
  if (most === 0) return undefined;
  return addressesOf(namespace, pool, book).indexOf(address) < most ? undefined : limitWords(most, namespace);
}

/** Held addresses beyond the number, the one that is held for the longest time first. */
export function heldBeyond(
  namespace: string,
  pool: AddressPool | undefined,
  book: Book,
): readonly AddressClaim[] {
  const most = pool?.allowed?.addressesPerNamespace ?? 0;
  if (pool === undefined || most === 0) return [];
  const held = book.index
    .heldOf(namespace)
    .filter(({ address }) => book.pools.ownerOf(address)?.name === pool.name);
  const surplus = addressesOf(namespace, pool, book).length + held.length - most;
  return held.slice(0, Math.max(0, surplus));
}

/** In use, the oldest first. */
function addressesOf(
  namespace: string,
  pool: AddressPool,
  { pools, index }: Book,
  counts: (claim: AddressClaim) => boolean = () => true,
): readonly string[] {
  const ofPool = index
    .usedBy(namespace)
    .filter((claim) => counts(claim) && pools.ownerOf(claim.address)?.name === pool.name);
  return [...new Set(ofPool.map(({ address }) => address))];
}

function limitWords(most: number, namespace: string): string {
  const who = namespace === NO_NAMESPACE ? 'all IngressClasses together' : `namespace "${namespace}"`;
  return `gives ${who} at most ${most} address${most === 1 ? '' : 'es'} (allowed.addressesPerNamespace)`;
}
