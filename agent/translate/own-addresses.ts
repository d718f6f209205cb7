// Which addresses a load balancer may listen on at a port: those whose port no other owner has. Pure.

import { compactList } from '../base/compact.ts';
import type { OwnerKey, Problem, Protocol } from '../model/load-balancer.ts';
import { objectInWords, objectOf } from '../model/names.ts';
import type { PortOwners } from '../model/port-owners.ts';

/** `refused`: one problem for each of the other addresses. */
export function ownAddresses(
  key: OwnerKey,
  { protocol, port }: { readonly protocol: Protocol; readonly port: number },
  addresses: readonly string[],
  portOwners: Pick<PortOwners, 'ownerOf'>,
): { readonly own: readonly string[]; readonly refused: readonly Problem[] } {
  const own: string[] = [];
  const refused: Problem[] = [];
  for (const address of addresses) {
    const owner = portOwners.ownerOf({ address, protocol, port });
    if (owner === undefined || owner === key) own.push(address);
    else {
      const message = `Cannot listen on ${address} ${protocol} port ${port}: the ${objectInWords(owner)} holds it`;
      refused.push({ object: objectOf(key), reason: 'AddressInUse', message, port: { protocol, port } });
    }
  }
  return { own: compactList(own), refused };
}
