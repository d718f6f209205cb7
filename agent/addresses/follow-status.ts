// What the status of a Service shows becomes its claim, whoever had the address here: of a cluster that keeps no claims
// it is all that other hosts see of what the one that leads has given. Touches the book only.

import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { Family } from '../model/load-balancer.ts';
import type { ClaimBook } from './claim-book.ts';
import { wishOf } from './find-address.ts';
import type { AddressRequest } from './request.ts';

/** The Services that have lost an address by it. */
export function followStatus(
  request: AddressRequest,
  book: ClaimBook,
  requests: ReadonlyMap<string, AddressRequest>,
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

function takeShown(
  request: AddressRequest,
  family: Family,
  address: string,
  book: ClaimBook,
  requests: ReadonlyMap<string, AddressRequest>,
): readonly string[] {
  const { pools, ledger } = book;
  const pool = pools.ownerOf(address);
  if (pool === undefined) return [];
  const wish = wishOf(request, pool);
  const blockers = [...ledger.blockers(address, wish)];
  if (!ledger.isReservedFor(address, wish) && blockers.some(({ reserved }) => reserved)) return [];
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

/** Of the family. */
function shownOf({ statusIPs }: AddressRequest, family: Family): string | undefined {
  return statusIPs.find((one) => one.family === family)?.address;
}
