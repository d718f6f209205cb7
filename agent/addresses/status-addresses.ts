// Addresses that the statuses of Services show. A leader adopts them as claims: from another load balancer, or from before
// a pool had them. A host that sees no claims of the leader follows them. Changes the claim book only.

import { type AddressClaim, portText } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family } from '../model/load-balancer.ts';
import type { ClaimBook } from './claim-book.ts';

import { type AddressRequest, wishOf } from './request.ts';

type Requests = ReadonlyMap<string, AddressRequest>;

/** Claims the address that the Service's status shows if no claim is in the way. True if it did. */
export function adoptStatus(
  request: AddressRequest,
  family: Family,
  book: ClaimBook,
  requests: Requests,
): boolean {
  const shown = ownedInStatus(request, family, book);
  const whole = shown.find(({ address, pool }) => {
    const { done } = book.index.blockers(address, wishOf(request, pool)).next();
    return done === true;
  });
  const found = whole ?? shown.find(({ address }) => isSharedByPorts(request, address, book, requests));
  if (found === undefined) return false;
  if (whole === undefined) book.narrow(found.address, requests);
  const ports = whole === undefined ? request.ports : undefined;
  book.take(request, family, found.address, found.pool, ports);
  return true;
}

/** Claims the addresses that the Service's status shows in any case. Gives the Services that have lost one of them. */
export function followStatus(
  request: AddressRequest,
  book: ClaimBook,
  requests: Requests,
): readonly string[] {
  const shown = request.families.map((family) => shownOf(request, family));
  if (shown.every((address) => address === undefined)) return [];
  return request.families.flatMap((family, at) => {
    const own = book.inUse(request.key).find((claim) => claim.family === family);
    const address = shown[at];
    if (address !== undefined && address !== own?.address)
      return takeShown(request, family, address, book, requests);
    if (address === undefined && own !== undefined && request.need === 'one') book.hold(own);
    return [];
  });
}

/** The addresses of the family that belong to a pool and do not contradict the request. */
function ownedInStatus(
  request: AddressRequest,
  family: Family,
  { pools }: Pick<ClaimBook, 'pools'>,
): readonly { readonly address: string; readonly pool: AddressPool }[] {
  const given = request.given.find((one) => one.family === family);
  return request.statusIPs.flatMap(({ address, family: other }) => {
    if (other !== family || (given !== undefined && given.address !== address)) return [];
    const pool = pools.ownerOf(address);
    return pool === undefined ? [] : [{ address, pool }];
  });
}

/**
 * Several Services show the address, each with other ports and none with a sharing key. They continue to share it, so
 * that no Service loses its address to a new pool.
 */
function isSharedByPorts(
  { sharingKey, ports }: AddressRequest,
  address: string,
  { index, isNew }: Pick<ClaimBook, 'index' | 'isNew'>,
  requests: Requests,
): boolean {
  if (sharingKey !== '' || ports.length === 0) return false;
  const own = new Set(ports.map(portText));
  const areOthers = (others: AddressClaim['ports']) => !others.some((port) => own.has(portText(port)));
  return index.at(address).every((claim) => {
    if (claim.reserved || claim.heldUntil !== 0 || claim.sharingKey !== '') return false;
    if (claim.ports.length > 0) return areOthers(claim.ports);
    // A Service that has had the whole address for longer keeps it.
    const rival = requests.get(claim.service);
    const showsIt = rival?.statusIPs.some((one) => one.address === address) ?? false;
    return isNew(claim) && showsIt && rival !== undefined && rival.ports.length > 0 && areOthers(rival.ports);
  });
}

function takeShown(
  request: AddressRequest,
  family: Family,
  address: string,
  book: ClaimBook,
  requests: Requests,
): readonly string[] {
  const { pools, index } = book;
  const pool = pools.ownerOf(address);
  if (pool === undefined) return [];
  const wish = wishOf(request, pool);
  const blockers = [...index.blockers(address, wish)];
  if (!index.isReservedFor(address, wish) && blockers.some(({ reserved }) => reserved)) return [];
  const others = blockers.filter(({ reserved }) => !reserved);
  const shows = ({ service }: AddressClaim): boolean => {
    const rival = requests.get(service);
    return rival !== undefined && shownOf(rival, family) === address;
  };
  const losers = others.filter((claim) => !shows(claim));
  for (const claim of losers) book.erase(claim);
  const isShared = losers.length < others.length;
  if (isShared) book.narrow(address, requests);
  book.take(request, family, address, pool, isShared ? request.ports : undefined);
  return losers.map(({ service }) => service);
}

function shownOf({ statusIPs }: AddressRequest, family: Family): string | undefined {
  return statusIPs.find((one) => one.family === family)?.address;
}
