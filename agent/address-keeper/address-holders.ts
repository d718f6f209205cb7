// Which addresses Nodes and endpoints have, which no load balancer may get. Reads the store of objects once for each decision.

import type { Holder } from '../addresses/addresses.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Node } from '../kubernetes/objects.ts';

type Objects = Pick<Cluster, 'endpointAddresses' | 'nodes'>;

export class AddressHolders {
  readonly #cluster: Objects;
  /** By address; undefined until one decision needs them. */
  #holders: ReadonlyMap<string, Holder> | undefined;
  /** Address → `Node n1`, of this list of Nodes. */
  #nodes: { readonly of: readonly Node[]; readonly names: ReadonlyMap<string, string> } = {
    of: [],
    names: new Map(),
  };
  #hasNodes = false;

  constructor(cluster: Objects) {
    this.#cluster = cluster;
  }

  of(address: string): Holder | undefined {
    this.#holders ??= holdersOf(this.#cluster, this.nodes());
    return this.#holders.get(address);
  }

  /** The same map as before unless a Node has changed. */
  nodes(): ReadonlyMap<string, string> {
    if (this.#hasNodes) return this.#nodes.names;
    this.#hasNodes = true;
    const of = this.#cluster.nodes();
    if (of !== this.#nodes.of) this.#nodes = { of, names: namesOf(of) };
    return this.#nodes.names;
  }

  /** The objects may have changed. */
  forget(): void {
    this.#holders = undefined;
    this.#hasNodes = false;
  }
}

/** Nodes are of the whole cluster; the author of a namespace can write an endpoint with any address. */
function holdersOf(cluster: Objects, nodes: ReadonlyMap<string, string>): ReadonlyMap<string, Holder> {
  const holders = new Map<string, Holder>();
  for (const [address, service] of cluster.endpointAddresses())
    if (!holders.has(address))
      holders.set(address, { name: `an endpoint of Service ${service}`, givesWay: true });
  for (const [address, name] of nodes) holders.set(address, { name, givesWay: false });
  return holders;
}

function namesOf(nodes: readonly Node[]): ReadonlyMap<string, string> {
  return new Map(
    nodes.flatMap(({ name, internalIPs }) => internalIPs.map((ip) => [ip, `Node ${name}`] as const)),
  );
}
