// The store of objects: takes changes from each source, indexes the slices of Services, and reports what a change made
// different. The work of a change is proportional to the change; an unchanged object costs none.
// Owns its indexes; touches nothing else.

import { compactList } from '../base/compact.ts';
import { sameValue } from '../base/same-value.ts';
import type { Dependency } from '../model/desired-state.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { StoredClaim } from './address-claim.ts';
import type { AddressPool } from './address-pool.ts';
import type { EndpointSlice, KubernetesObject, Node, Service } from './objects.ts';

/** In order of precedence: if two sources have an object, the first one's counts. */
const objectSources = ['manifests', 'api'] as const;
export type ObjectSource = (typeof objectSources)[number];

export interface ObjectRef {
  readonly kind: KubernetesObject['kind'];
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
  /** Keys of Services. */
  readonly services: ReadonlySet<string>;
  /** What a translation may have read. */
  readonly dependencies: ReadonlySet<Dependency>;
  readonly poolsChanged: boolean;
  /** Names of AddressClaims. */
  readonly claims: ReadonlySet<string>;
}

type Kind = KubernetesObject['kind'];
type ObjectOf<K extends Kind> = Extract<KubernetesObject, { kind: K }>;
/** Each kind's objects by key. */
type Store = { readonly [K in Kind]: Map<string, ObjectOf<K>> };

export class Cluster {
  /** The objects of each source, also those that do not count. */
  readonly #held: Readonly<Record<ObjectSource, Store>> = { manifests: emptyStore(), api: emptyStore() };
  /** The objects that count. */
  readonly #objects = emptyStore();
  readonly #isOurs: (service: Service) => boolean;
  /** Keys of Services of which a manifest's counts. */
  readonly #ofFolder = new Set<string>();
  /** Services of the API that do not count, because a manifest has one of the same key. */
  readonly #shadowed = new Map<string, Service>();
  /** Service key → its slices, sorted by name; no empty entries. */
  readonly #slicesOf = new Map<string, readonly EndpointSlice[]>();
  #sortedNodes: readonly Node[] | undefined;

  /** `isOurs`: the agent serves the Service; a manifest's Service that it does not serve shadows none of the API. */
  constructor(isOurs: (service: Service) => boolean = () => true) {
    this.#isOurs = isOurs;
  }

  /** Takes a change of one source; a source can only remove its own objects. */
  apply(change: Pick<ObjectsChange, 'upserted' | 'removed'>, source: ObjectSource): Differences {
    const services = new Set<string>();
    const dependencies = new Set<Dependency>();
    const claims = new Set<string>();
    let poolsChanged = false;
    const settle = ({ kind, key }: ObjectRef) => {
      if (!this.#settle(kind, key, dependencies)) return;
      if (kind === 'Service') services.add(key);
      if (kind === 'AddressPool') poolsChanged = true;
      if (kind === 'AddressClaim') claims.add(key);
    };
    for (const ref of change.removed) {
      if (this.#held[source][ref.kind].delete(ref.key)) settle(ref);
    }
    for (const object of change.upserted) {
      (this.#held[source][object.kind] as Map<string, KubernetesObject>).set(object.key, object);
      settle(object);
    }
    return { services, dependencies, poolsChanged, claims };
  }

  /** Decides again which Services of manifests the agent serves, after the settings changed. */
  reclassify(): void {
    for (const key of this.#held.manifests.Service.keys()) this.#settle('Service', key, new Set());
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

  /** `namespace/name` of each. */
  serviceKeys(): readonly string[] {
    return [...this.#objects.Service.keys()];
  }

  /**
   * Sorted by name. The slices of the old Endpoints object only if the Service has no EndpointSlice.
   * The same list as before unless a slice has changed.
   */
  slices(key: string): readonly EndpointSlice[] {
    return this.#slicesOf.get(key) ?? this.#objects.Endpoints.get(key)?.slices ?? NO_SLICES;
  }

  /** Of all slices, each with the key of its Service; with repetitions. */
  *endpointAddresses(): Generator<readonly [address: string, service: string]> {
    for (const [service, slices] of this.#slicesOf)
      for (const { endpoints } of slices) for (const { address } of endpoints) yield [address, service];
  }

  /** Sorted by name; the same list as before unless a Node has changed. */
  nodes(): readonly Node[] {
    this.#sortedNodes ??= [...this.#objects.Node.values()].sort(byName);
    return this.#sortedNodes;
  }

  pools(): IterableIterator<AddressPool> {
    return this.#objects.AddressPool.values();
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

  /** Updates the indexes to what the sources have of one object; true if that made a difference. */
  #settle<K extends Kind>(kind: K, key: string, dirty: Set<Dependency>): boolean {
    const isShadowChanged = kind === 'Service' && this.#settleShadow(key);
    const objects = this.#objects[kind] as Map<string, ObjectOf<K>>;
    const before = objects.get(key);
    const now = this.#winner(kind, key);
    if (!replace(objects, key, now) && !isShadowChanged) return false;
    if (kind === 'Service') dirty.add(`service ${key}`);
    if (kind === 'Endpoints' && !this.#slicesOf.has(key)) dirty.add(`endpoints ${key}`);
    if (before?.kind === 'EndpointSlice') this.#unlink(before as EndpointSlice, dirty);
    if (now?.kind === 'EndpointSlice') this.#link(now as EndpointSlice, dirty);
    if (kind === 'Node') {
      dirty.add('nodes');
      this.#sortedNodes = undefined;
    }
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
    for (const source of isApiFirst ? objectSources.toReversed() : objectSources) {
      const object = this.#held[source][kind].get(key);
      if (object !== undefined) return object as ObjectOf<K>;
    }
    return undefined;
  }

  #link(slice: EndpointSlice, dirty: Set<Dependency>): void {
    const owner = ownerOf(slice);
    if (owner === undefined) return;
    const siblings = this.#slicesOf.get(owner) ?? NO_SLICES;
    const after = siblings.findIndex(({ name }) => name > slice.name);
    this.#slicesOf.set(owner, siblings.toSpliced(after < 0 ? siblings.length : after, 0, slice));
    dirty.add(`endpoints ${owner}`);
  }

  #unlink(slice: EndpointSlice, dirty: Set<Dependency>): void {
    const owner = ownerOf(slice);
    const siblings = owner === undefined ? undefined : this.#slicesOf.get(owner);
    if (owner === undefined || siblings === undefined) return;
    const left = compactList(siblings.filter((sibling) => sibling !== slice));
    if (left.length === 0) this.#slicesOf.delete(owner);
    else this.#slicesOf.set(owner, left);
    dirty.add(`endpoints ${owner}`);
  }
}

const NO_SLICES: readonly never[] = [];

function emptyStore(): Store {
  return {
    Service: new Map(),
    EndpointSlice: new Map(),
    Endpoints: new Map(),
    Node: new Map(),
    AddressPool: new Map(),
    AddressClaim: new Map(),
  };
}

/** False if the map has an equal value: that keeps its identity. */
function replace<T>(map: Map<string, T>, key: string, value: T | undefined): boolean {
  if (sameValue(map.get(key), value)) return false;
  if (value === undefined) map.delete(key);
  else map.set(key, value);
  return true;
}

function ownerOf({ namespace, serviceName }: EndpointSlice): string | undefined {
  return serviceName === '' ? undefined : `${namespace}/${serviceName}`;
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
