// Which addresses Nodes and endpoints have, which no load balancer may get. Reads the store of objects once for each decision.

import type { Holder } from '../addresses/addresses.ts';
import type { Cluster } from '../kubernetes/cluster.ts';

type Objects = Pick<Cluster, 'endpointAddresses' | 'nodes'>;

export class AddressHolders {
  readonly #cluster: Objects;
  /** By address; undefined until one decision needs them. */
  #holders: ReadonlyMap<string, Holder> | undefined;

  constructor(cluster: Objects) {
    this.#cluster = cluster;
  }

  of(address: string): Holder | undefined {
    this.#holders ??= holdersOf(this.#cluster);
    return this.#holders.get(address);
  }

  /** The objects may have changed. */
  forget(): void {
    this.#holders = undefined;
  }
}

/** Nodes are of the whole cluster; the author of a namespace can write an endpoint with any address. */
function holdersOf(cluster: Objects): ReadonlyMap<string, Holder> {
  const holders = new Map<string, Holder>();
  for (const [address, service] of cluster.endpointAddresses())
    if (!holders.has(address))
      holders.set(address, { name: `an endpoint of Service ${service}`, givesWay: true });
  for (const { name, internalIPs } of cluster.nodes())
    for (const address of internalIPs) holders.set(address, { name: `Node ${name}`, givesWay: false });
  return holders;
}
