// The store of objects: takes changes from each source, indexes them by what they belong to, and reports what a change made
// different. The work of a change is proportional to the change; an unchanged object costs none.
// Owns its indexes; touches nothing else.

import { sameValue } from '../base/same-value.ts';
import type { Dependency, RouteParent } from '../model/desired-state.ts';
import type { OwnerKey, Problem } from '../model/load-balancer.ts';
import { keyOf, NO_NAMESPACE, type OwnerKind, ownerOf } from '../model/names.ts';
import type { RouteKind } from '../model/object-status.ts';
import type { StoredClaim } from './address-claim.ts';
import type { AddressPool } from './address-pool.ts';
import type { StoredPeer } from './bgp-peer.ts';
import type { ConfigMap, Secret } from './certificate-objects.ts';
import type {
  BackendTlsPolicy,
  Gateway,
  GatewayClass,
  ListenerSet,
  ReferenceGrant,
} from './gateway/gateway-objects.ts';
import type { Route } from './gateway/route-objects.ts';
import type { Ingress, IngressClass } from './ingress/ingress-objects.ts';
import { ALL_KINDS, type Kind } from './kinds.ts';
import type { NetworkPolicy } from './network-policy.ts';
import { ObjectIndex } from './object-index.ts';
import type { EndpointSlice, KubernetesObject, Node, Pod, Service } from './objects.ts';
import { PodIndex } from './pod-index.ts';
import { SliceIndex } from './slice-index.ts';

/** In order of precedence: if two sources have an object, the first one's counts. `files`: certificates that the settings name. */
const objectSources = ['files', 'manifests', 'api'] as const;
export type ObjectSource = (typeof objectSources)[number];

export interface ObjectRef {
  readonly kind: Kind;
  readonly key: string;
}

/** The report of a source: differences to its last report, and all problems that it has now. */
export interface ObjectsChange {
  readonly upserted: readonly KubernetesObject[];
  readonly removed: readonly ObjectRef[];
  readonly problems: readonly Problem[];
  /**
   * When the pods changed that caused this change of an EndpointSlice (annotation
   * `endpoints.kubernetes.io/last-change-trigger-time`), milliseconds since the epoch; only for a change of just now.
   */
  readonly triggerTime?: number;
}

/** What a change of objects made different. */
export interface Differences {
  /** Keys of Services, Gateways and classes. */
  readonly owners: ReadonlySet<OwnerKey>;
  /** What a translation may have read. */
  readonly dependencies: ReadonlySet<Dependency>;
  readonly poolsChanged: boolean;
  readonly peersChanged: boolean;
  /** Names of AddressClaims. */
  readonly claims: ReadonlySet<string>;
}

type ObjectOf<K extends Kind> = Extract<KubernetesObject, { kind: K }>;
/** Each kind's objects by key. */
type Store = { readonly [K in Kind]: Map<string, ObjectOf<K>> };

export class Cluster {
  /** The objects of each source, also those that do not count. */
  readonly #held: Readonly<Record<ObjectSource, Store>> = {
    files: emptyStore(),
    manifests: emptyStore(),
    api: emptyStore(),
  };
  /** The objects that count. */
  readonly #objects = emptyStore();
  readonly #isOurs: (service: Service) => boolean;
  /** The object does not count, whatever source has it: what agents have left in it is not this agent's to write. */
  readonly isLeftOut: (object: ObjectRef) => boolean;
  /** Keys of Services of which a manifest's counts. */
  readonly #ofFolder = new Set<string>();
  /** Services of the API that do not count, because a manifest has one of the same key. */
  readonly #shadowed = new Map<string, Service>();
  readonly #slices = new SliceIndex();
  readonly #pods = new PodIndex();
  #sortedNodes: readonly Node[] | undefined;
  readonly #index = new ObjectIndex();

  /**
   * `isOurs`: the agent serves the Service; a manifest's Service that it does not serve shadows none of the API.
   * `isLeftOut`: its answer may change, followed by recount().
   */
  constructor(
    isOurs: (service: Service) => boolean = () => true,
    isLeftOut: (object: ObjectRef) => boolean = () => false,
  ) {
    this.#isOurs = isOurs;
    this.isLeftOut = isLeftOut;
  }

  /** Takes a change of one source; a source can only remove its own objects. */
  apply(change: Pick<ObjectsChange, 'upserted' | 'removed'>, source: ObjectSource): Differences {
    const refs: ObjectRef[] = change.removed.filter(({ kind, key }) => this.#held[source][kind].delete(key));
    for (const object of change.upserted) {
      (this.#held[source][object.kind] as Map<string, KubernetesObject>).set(object.key, object);
      refs.push(object);
    }
    return this.#settleAll(refs);
  }

  /** Decides again which Services of manifests the agent serves, after the settings changed. */
  reclassify(): void {
    for (const key of this.#held.manifests.Service.keys()) this.#settle('Service', key, new Set());
  }

  /** Decides again which objects are left out. */
  recount(): Differences {
    const refs = objectSources.flatMap((source) =>
      ALL_KINDS.flatMap((kind) => [...this.#held[source][kind].keys()].map((key) => ({ kind, key }))),
    );
    return this.#settleAll(refs);
  }

  service(key: string): Service | undefined {
    return this.#objects.Service.get(key);
  }

  /** True if the Service that counts is a manifest's. */
  isOfFolder(key: string): boolean {
    return this.#ofFolder.has(key);
  }

  /** The Service of the API that does not count, because a manifest has one of the same key. */
  shadowed(key: string): Service | undefined {
    return this.#shadowed.get(key);
  }

  services(): IterableIterator<Service> {
    return this.#objects.Service.values();
  }

  /**
   * Sorted by name. The slices of the old Endpoints object only if the Service has no EndpointSlice.
   * The same list as before unless a slice has changed.
   */
  slices(key: string): readonly EndpointSlice[] {
    return this.#slices.of(key) ?? this.#objects.Endpoints.get(key)?.slices ?? NO_SLICES;
  }

  /** The slices of a headless Service, which only routes send to. */
  headlessSlices(key: string): readonly EndpointSlice[] {
    return this.#slices.ofHeadless(key) ?? NO_SLICES;
  }

  /** Addresses of all slices, each with the key of its Service; with repetitions. */
  endpointAddresses(): Iterable<readonly [address: string, service: string]> {
    return this.#slices.addresses();
  }

  /** Sorted by name; the same list as before unless a Node has changed. */
  nodes(): readonly Node[] {
    this.#sortedNodes ??= [...this.#objects.Node.values()].sort(byName);
    return this.#sortedNodes;
  }

  pod(key: string): Pod | undefined {
    return this.#objects.Pod.get(key);
  }

  gatewayClass(name: string): GatewayClass | undefined {
    return this.#objects.GatewayClass.get(name);
  }

  gateway(key: string): Gateway | undefined {
    return this.#objects.Gateway.get(key);
  }

  gateways(): IterableIterator<Gateway> {
    return this.#objects.Gateway.values();
  }

  listenerSets(): IterableIterator<ListenerSet> {
    return this.#objects.ListenerSet.values();
  }

  /** The sets of a Gateway; unordered; the same list as before unless one of them has changed. */
  listenerSetsOf(gateway: string): readonly ListenerSet[] {
    return this.#index.at(`listenersets ${gateway}`) as readonly ListenerSet[];
  }

  /** Routes of all kinds; unordered; the same list as before unless one of them has changed. */
  routesOf(parent: RouteParent): readonly Route[] {
    return this.#index.at(`routes ${parent}`) as readonly Route[];
  }

  /** Unordered; the same list as before unless one of them has changed. */
  grantsIn(namespace: string): readonly ReferenceGrant[] {
    return this.#index.at(`grants ${namespace}`) as readonly ReferenceGrant[];
  }

  /** The policies of a Service; unordered; the same list as before unless one of them has changed. */
  policiesOf(service: string): readonly BackendTlsPolicy[] {
    return this.#index.at(`policies ${service}`) as readonly BackendTlsPolicy[];
  }

  /** undefined if the Namespace is not known. */
  namespaceLabels(name: string): Readonly<Record<string, string>> | undefined {
    return this.#objects.Namespace.get(name)?.labels;
  }

  ingressClass(name: string): IngressClass | undefined {
    return this.#objects.IngressClass.get(name);
  }

  ingressClasses(): IterableIterator<IngressClass> {
    return this.#objects.IngressClass.values();
  }

  /** The Ingresses of a class; unordered; the same list as before unless one of them has changed. */
  ingressesOf(className: string): readonly Ingress[] {
    return this.#index.at(`ingresses ${className}`) as readonly Ingress[];
  }

  /** Unordered; the same list as before unless one of them has changed. */
  networkPoliciesIn(namespace: string): readonly NetworkPolicy[] {
    return this.#index.at(`networkpolicies ${namespace}`) as readonly NetworkPolicy[];
  }

  /** Pods with this address of their own; usually one. */
  podsAt(address: string): readonly Pod[] {
    return this.#pods.at(address);
  }

  has({ kind, key }: ObjectRef): boolean {
    return this.#objects[kind].has(key);
  }

  route(kind: RouteKind, key: string): Route | undefined {
    return this.#objects[kind].get(key);
  }

  /** True if the object that counts comes from a folder of manifests of this host. */
  isOfManifest({ kind, key }: ObjectRef): boolean {
    return kind === 'Service' ? this.isOfFolder(key) : this.#held.manifests[kind].has(key);
  }

  /** The owners of all objects, for new settings. */
  ownerKeys(): readonly OwnerKey[] {
    const kinds = Object.entries(OWNERS) as [Kind, (key: string) => OwnerKey][];
    return kinds.flatMap(([kind, keyOfOwner]) => [...this.#objects[kind].keys()].map(keyOfOwner));
  }

  /** The object that the owner is. */
  ownerObject(owner: OwnerKey): Service | Gateway | GatewayClass | IngressClass | undefined {
    const { kind, namespace, name } = ownerOf(owner);
    switch (kind) {
      case 'Service':
        return this.service(owner);
      case 'Gateway':
        return this.gateway(`${namespace}/${name}`);
      case 'GatewayClass':
        return this.gatewayClass(name);
      case 'Ingress':
        return this.ingressClass(name);
      case 'Pool':
      case 'Datagrams':
        return undefined;
    }
  }

  secret(key: string): Secret | undefined {
    return this.#objects.Secret.get(key);
  }

  configMap(key: string): ConfigMap | undefined {
    return this.#objects.ConfigMap.get(key);
  }

  pools(): IterableIterator<AddressPool> {
    return this.#objects.AddressPool.values();
  }

  peers(): IterableIterator<StoredPeer> {
    return this.#objects.BGPPeer.values();
  }

  claim(name: string): StoredClaim | undefined {
    return this.#objects.AddressClaim.get(name);
  }

  claims(): IterableIterator<StoredClaim> {
    return this.#objects.AddressClaim.values();
  }

  /** The number of objects of each kind that count, for metrics. */
  counts(): Readonly<Record<Kind, number>> {
    const counts = Object.entries(this.#objects).map(([kind, objects]) => [kind, objects.size]);
    return Object.fromEntries(counts) as Record<Kind, number>;
  }

  #settleAll(refs: Iterable<ObjectRef>): Differences {
    const owners = new Set<OwnerKey>();
    const dependencies = new Set<Dependency>();
    const claims = new Set<string>();
    let poolsChanged = false;
    let peersChanged = false;
    for (const { kind, key } of refs) {
      if (!this.#settle(kind, key, dependencies)) continue;
      const owner = OWNERS[kind]?.(key);
      if (owner !== undefined) owners.add(owner);
      if (kind === 'AddressPool') poolsChanged = true;
      if (kind === 'BGPPeer') peersChanged = true;
      if (kind === 'AddressClaim') claims.add(key);
    }
    return { owners, dependencies, poolsChanged, peersChanged, claims };
  }

  /** Updates the indexes to what the sources have of one object; true if that made a difference. */
  #settle<K extends Kind>(kind: K, key: string, dirty: Set<Dependency>): boolean {
    const isShadowChanged = kind === 'Service' && this.#settleShadow(key);
    const objects = this.#objects[kind] as Map<string, ObjectOf<K>>;
    const before = objects.get(key);
    const now = this.#winner(kind, key);
    if (!replace(objects, key, now) && !isShadowChanged) return false;
    if (kind === 'Endpoints' && this.#slices.of(key) === undefined) dirty.add(`endpoints ${key}`);
    this.#index.replace(before, now, dirty);
    if (before?.kind === 'EndpointSlice') this.#slices.delete(before as EndpointSlice, dirty);
    if (now?.kind === 'EndpointSlice') this.#slices.add(now as EndpointSlice, dirty);
    if (kind === 'Node') this.#sortedNodes = undefined;
    if (before?.kind === 'Pod') this.#pods.delete(before as Pod);
    if (now?.kind === 'Pod') this.#pods.add(now as Pod);
    return true;
  }

  /** True if a manifest's Service now shadows the API's, or no longer does, or shadows another one. */
  #settleShadow(key: string): boolean {
    const { manifests, api } = this.#held;
    const own = manifests.Service.get(key);
    const isOfFolder = own !== undefined && (!api.Service.has(key) || this.#isOurs(own));
    const isChanged = isOfFolder !== this.#ofFolder.has(key);
    if (isOfFolder) this.#ofFolder.add(key);
    else this.#ofFolder.delete(key);
    return replace(this.#shadowed, key, isOfFolder ? api.Service.get(key) : undefined) || isChanged;
  }

  #winner<K extends Kind>(kind: K, key: string): ObjectOf<K> | undefined {
    // The agents' own writes are newer than any copy in a manifest.
    const isApiFirst = kind === 'AddressClaim' || (kind === 'Service' && !this.#ofFolder.has(key));
    if (this.isLeftOut({ kind, key })) return undefined;
    for (const source of isApiFirst ? objectSources.toReversed() : objectSources) {
      const object = this.#held[source][kind].get(key);
      if (object !== undefined) return object as ObjectOf<K>;
    }
    return undefined;
  }
}

const NO_SLICES: readonly never[] = [];

/** The owner that an object of the kind is. */
const OWNERS: Readonly<Partial<Record<Kind, (key: string) => OwnerKey>>> = {
  Service: (key) => key,
  Gateway: (key) => keyOfParts('Gateway', key),
  GatewayClass: (name) => keyOf({ kind: 'GatewayClass', namespace: NO_NAMESPACE, name }),
  IngressClass: (name) => keyOf({ kind: 'Ingress', namespace: NO_NAMESPACE, name }),
};

function keyOfParts(kind: OwnerKind, key: string): OwnerKey {
  const slash = key.indexOf('/');
  return keyOf({ kind, namespace: key.slice(0, slash), name: key.slice(slash + 1) });
}

function emptyStore(): Store {
  return Object.fromEntries(ALL_KINDS.map((kind) => [kind, new Map()])) as unknown as Store;
}

/** False if the map has an equal value: that keeps its identity. */
function replace<T>(map: Map<string, T>, key: string, value: T | undefined): boolean {
  if (sameValue(map.get(key), value)) return false;
  if (value === undefined) map.delete(key);
  else map.set(key, value);
  return true;
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
