// Which addresses a load balancer may listen on at a port: those whose port no other owner has,
// and whose pool allows the port. Pure.

import { compactList } from '../base/compact.ts';
import type { OwnerKey, Problem, Protocol } from '../model/load-balancer.ts';
import { objectInWords, objectOf } from '../model/names.ts';
import type { PortOwners } from '../model/port-owners.ts';

/** `refused`: one problem for each of the other addresses. `refusalOf`: the pool does not allow the port. */
export function ownAddresses(
  key: OwnerKey,
  { protocol, port }: { readonly protocol: Protocol; readonly port: number },
  addresses: readonly string[],
  portOwners: Pick<PortOwners, 'ownerOf'>,
  refusalOf: (
    address: string,
    place: { readonly protocol: Protocol; readonly port: number },
  ) => Problem | undefined = () => undefined,
): { readonly own: readonly string[]; readonly refused: readonly Problem[] } {
  const own: string[] = [];
  const refused: Problem[] = [];
  for (const address of addresses) {
    const refusal = refusalOf(address, { protocol, port });
    if (refusal !== undefined) {
      refused.push(refusal);
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
