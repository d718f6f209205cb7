// Several Services that show one address in their statuses, each with ports of its own and none with a sharing key: they
// named it before a pool had it, or come from another load balancer. Nobody loses what he has because there is a pool
// now, so they go on sharing it. Pure.

import { type AddressClaim, portText } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family } from '../model/load-balancer.ts';
import type { ClaimBook } from './claim-book.ts';
import type { AddressRequest } from './request.ts';

/** The address that the Service's status shows, where all who have it have come to it like this, and by other ports. */
export function findSharedInStatus(
  request: AddressRequest,
  family: Family,
  { pools, ledger, isNew }: Pick<ClaimBook, 'pools' | 'ledger' | 'isNew'>,
  requests: ReadonlyMap<string, AddressRequest>,
): { readonly address: string; readonly pool: AddressPool } | undefined {
  if (request.sharingKey !== '' || request.ports.length === 0) return undefined;
  const given = request.given.find((one) => one.family === family);
  const own = new Set(request.ports.map(portText));
  const isApart = (ports: AddressClaim['ports']) => !ports.some((port) => own.has(portText(port)));
  const leavesRoom = (claim: AddressClaim): boolean => {
    if (claim.reserved || claim.heldUntil !== 0 || claim.sharingKey !== '') return false;
    if (claim.ports.length > 0) return isApart(claim.ports);
    // Who has had all of it for longer keeps all of it.
    const { statusIPs = [], ports = [] } = requests.get(claim.service) ?? {};
    const showsIt = statusIPs.some(({ address }) => address === claim.address);
    return isNew(claim) && showsIt && ports.length > 0 && isApart(ports);
  };
  for (const { address, family: other } of request.statusIPs) {
    if (other !== family || (given !== undefined && given.address !== address)) continue;
    const pool = pools.ownerOf(address);
    if (pool !== undefined && ledger.at(address).every(leavesRoom)) return { address, pool };
  }
  return undefined;
}
