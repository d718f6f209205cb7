// Lets Services exchange addresses: each names an address that another one of them has and leaves. Alone, each would wait
// for the others forever. Changes the claim book only.

import { type AddressClaim, portText } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family } from '../model/load-balancer.ts';
import type { ClaimBook } from './claim-book.ts';
import type { AddressRequest } from './request.ts';
import { findMissing, missingFamilies } from './service-claims.ts';

/** A Service leaves its address of a family for another one. */
interface Move {
  readonly request: AddressRequest;
  readonly family: Family;
  readonly address: string;
  readonly pool: AddressPool;
}

/**
 * Gives the Service what it names, if the Services that have it get what they name by that, and so on: a ring of any
 * length. Returns the Services whose claims changed. `decides`: this host decides on the Service.
 */
export function exchange(
  { key }: AddressRequest,
  book: ClaimBook,
  requests: ReadonlyMap<string, AddressRequest>,
  decides: (key: string) => boolean,
): readonly string[] {
  const moves: Move[] = [];
  const inTheWay: AddressClaim[] = [];
  const services = new Set([key]);
  for (const service of services) {
    const request = requests.get(service);
    if (request === undefined || !decides(service)) return [];
    const families = missingFamilies(request, book);
    for (const [at, found] of findMissing(request, book).entries()) {
      const family = families[at];
      const given = request.given.find((one) => one.family === family);
      const pool = given && book.pools.ownerOf(given.address);
      if (family === undefined || given === undefined || pool === undefined) return [];
      const claims = found.kind === 'found' ? found.evicted : found.rivals;
      if (claims.length === 0 && found.kind === 'none') return [];
      moves.push({ request, family, address: given.address, pool });
      inTheWay.push(...claims);
      for (const { service: other, heldUntil } of claims) if (heldUntil === 0) services.add(other);
    }
  }
  const isLeft = ({ service, family, heldUntil }: AddressClaim): boolean =>
    heldUntil !== 0 || moves.some((move) => move.request.key === service && move.family === family);
  if (services.size === 1 || !inTheWay.every(isLeft) || !areCompatible(moves)) return [];
  for (const claim of inTheWay) book.erase(claim);
  for (const { request, family } of moves)
    for (const claim of book.inUse(request.key)) if (claim.family === family) book.erase(claim);
  for (const { request, family, address, pool } of moves) book.take(request, family, address, pool);
  return [...services];
}

/** Services that name the same address can share it. */
function areCompatible(moves: readonly Move[]): boolean {
  return moves.every((one, at) =>
    moves.slice(at + 1).every((other) => one.address !== other.address || canShare(one, other)),
  );
}

function canShare({ request: one, pool }: Move, { request: other }: Move): boolean {
  const ports = new Set(one.ports.map(portText));
  return (
    one.sharingKey !== '' &&
    one.sharingKey === other.sharingKey &&
    (one.namespace === other.namespace || pool.shareAcrossNamespaces) &&
    !other.ports.some((port) => ports.has(portText(port)))
  );
}
