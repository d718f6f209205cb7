// Which addresses a load balancer may listen on at a port: those whose port no other owner has,
// and whose pool allows the port. Pure.

import { notGranted } from '../addresses/assignment.ts';
import { whyNotGranted } from '../addresses/granted-ports.ts';
import { compactList } from '../base/compact.ts';
import type { OwnerKey, Problem, Protocol } from '../model/load-balancer.ts';
import { objectInWords, objectOf } from '../model/names.ts';
import type { PortOwners } from '../model/port-owners.ts';
import type { PoolAddresses } from './service/service-vips.ts';

/** `refused`: one problem for each of the other addresses. */
export function ownAddresses(
  key: OwnerKey,
  { protocol, port }: { readonly protocol: Protocol; readonly port: number },
  addresses: readonly string[],
  portOwners: Pick<PortOwners, 'ownerOf'>,
  ofPools?: PoolAddresses,
): { readonly own: readonly string[]; readonly refused: readonly Problem[] } {
  const own: string[] = [];
  const refused: Problem[] = [];
  for (const address of addresses) {
    const why = whyNotGranted(limitOf(ofPools, address), { protocol, port });
    if (why !== undefined) {
      refused.push(notGranted(key, address, { protocol, port }, why));
      continue;
    }
    const owner = portOwners.ownerOf({ address, protocol, port });
    if (owner === undefined || owner === key) own.push(address);
    else {
      const message = `Cannot listen on ${address} ${protocol} port ${port}: the ${objectInWords(owner)} holds it`;
      refused.push({ object: objectOf(key), reason: 'AddressInUse', message, port: { protocol, port } });
    }
  }
  return { own: compactList(own), refused };
}

/** False if the pool of the address does not allow the owner this port: then the owner does not ask for it. */
export function isGranted(
  ofPools: PoolAddresses | undefined,
  place: { readonly address: string; readonly protocol: Protocol; readonly port: number },
): boolean {
  return whyNotGranted(limitOf(ofPools, place.address), place) === undefined;
}

function limitOf(ofPools: PoolAddresses | undefined, address: string) {
  return ofPools?.addresses.find((each) => each.address === address)?.limit;
}
