// The desired state: the load balancers that the objects ask for, and the indexes by which single load balancers are
// translated again. Only translation changes it.

import type { Ignored, LoadBalancer, Member, OwnerKey } from './load-balancer.ts';
import { ObjectStatuses } from './object-statuses.ts';
import { PoolUses } from './pool-uses.ts';
import { PortOwners } from './port-owners.ts';
import { Shares } from './shares.ts';

export interface DesiredState {
  readonly loadBalancers: Map<OwnerKey, LoadBalancer>;
  readonly ignored: Map<OwnerKey, Ignored>;
  readonly dependents: Dependents;
  readonly portOwners: PortOwners;
  readonly poolUses: PoolUses;
  readonly statuses: ObjectStatuses;
  readonly shares: NamespaceShares;
  /** By owner and listener: the members of pools at the end of the last agent (state/recorded-members.ts). */
  readonly remembered: Map<OwnerKey, Map<string, readonly Member[]>>;
}

/** What the load balancers of a namespace may have in HAProxy. */
export interface NamespaceShares {
  /** Servers; a listener counts as several. */
  readonly servers: Shares;
  /** Servers with a health check, which takes a descriptor. */
  readonly checks: Shares;
}

/** For each namespace; 0: no bound. */
export interface NamespaceBounds {
  readonly maxServersPerNamespace: number;
  readonly maxChecksPerNamespace: number;
}

const NO_BOUNDS: NamespaceBounds = { maxServersPerNamespace: 0, maxChecksPerNamespace: 0 };

/** `bounds`: those in force. */
export function emptyDesiredState(bounds: () => NamespaceBounds = () => NO_BOUNDS): DesiredState {
  return {
    loadBalancers: new Map(),
    ignored: new Map(),
    dependents: new Dependents(),
    portOwners: new PortOwners(),
    poolUses: new PoolUses(),
    statuses: new ObjectStatuses(),
    shares: {
      servers: new Shares(() => bounds().maxServersPerNamespace),
      checks: new Shares(() => bounds().maxChecksPerNamespace),
    },
    remembered: new Map(),
  };
}

/**
 * What translation reads: `service default/web`; `endpoints default/web`: all EndpointSlices of that Service; `nodes`: all
 * Nodes; `vip 192.0.2.10`: a VIP that was refused as a member; `pod default/web-1`; `pods default`: whether the Pods of that
 * namespace can be read; `secret default/shop-tls`;
 * `configmap default/clients`.
 * Of the Gateway API: `listenersets default/edge`: all that are attached to that Gateway; `routes gateway default/edge` and
 * `routes listenerset default/extra`: all that name it as a parent; `grants shop`: all ReferenceGrants of that namespace;
 * `namespace shop`: its labels; `policies default/web`: all BackendTLSPolicies of that Service.
 * `jwks https://…`: the keys behind a URL.
 * `ingresses edge`: all Ingresses of that class.
 * With the setting `enforceNetworkPolicy`: `networkpolicies shop`: all NetworkPolicies of that namespace; `pod shop/web-1`;
 * `podaddress 10.0.0.5`: the pods that have this address.
 */
export type Dependency =
  | `service ${string}`
  | `endpoints ${string}`
  | 'nodes'
  | `vip ${string}`
  | `pod ${string}`
  | `pods ${string}`
  | `secret ${string}`
  | `configmap ${string}`
  | `jwks ${string}`
  | `gatewayclass ${string}`
  | `gateway ${string}`
  | `listenersets ${string}`
  | `routes ${RouteParent}`
  | `grants ${string}`
  | `namespace ${string}`
  | `policies ${string}`
  | `ingressclass ${string}`
  | `ingresses ${string}`
  | `networkpolicies ${string}`
  | `pod ${string}`
  | `podaddress ${string}`;

/** What routes attach to. */
export type RouteParent = `gateway ${string}` | `listenerset ${string}`;

const NONE: readonly never[] = [];

/** Which owners depend on which objects: when an object changes, its dependents are translated again. */
class Dependents {
  readonly #reads = new Map<OwnerKey, readonly Dependency[]>();
  readonly #readers = new Map<Dependency, Set<OwnerKey>>();

  /** Replaces the dependencies of an owner. */
  set(owner: OwnerKey, reads: readonly Dependency[]): void {
    const before = this.#reads.get(owner) ?? NONE;
    if (before.length === reads.length && before.every((each, at) => each === reads[at])) return;
    for (const dependency of before) this.#remove(dependency, owner);
    for (const dependency of reads) this.#add(dependency, owner);
    if (reads.length === 0) this.#reads.delete(owner);
    else this.#reads.set(owner, reads);
  }

  /** The owners that depend on any of these. */
  of(changed: Iterable<Dependency>): ReadonlySet<OwnerKey> {
    const owners = new Set<OwnerKey>();
    for (const dependency of changed)
      for (const owner of this.#readers.get(dependency) ?? NONE) owners.add(owner);
    return owners;
  }

  #add(dependency: Dependency, owner: OwnerKey): void {
    const readers = this.#readers.get(dependency);
    if (readers === undefined) this.#readers.set(dependency, new Set([owner]));
    else readers.add(owner);
  }

  #remove(dependency: Dependency, owner: OwnerKey): void {
    const readers = this.#readers.get(dependency);
    readers?.delete(owner);
    if (readers?.size === 0) this.#readers.delete(dependency);
  }
}
