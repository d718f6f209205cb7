// The store of objects: takes changes from each source, answers who has which slices, and says what a change made
// different. The work of a change is proportional to the change; what is delivered again unchanged is none.
// Owns its indexes; touches nothing else.

import { compactList } from '../base/compact.ts';
import { sameValue } from '../base/same-value.ts';
import type { Dependency } from '../model/desired-state.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { StoredClaim } from './address-claim.ts';
import type { AddressPool } from './address-pool.ts';
import type { EndpointSlice, Endpoints, KubernetesObject, Node, Service } from './objects.ts';

/** In order of precedence: of an object that two of them hold, the first one's counts. */
const objectSources = ['manifests', 'api'] as const;
export type ObjectSource = (typeof objectSources)[number];

/** Names an object; an object names itself. */
export interface ObjectRef {
  readonly kind: KubernetesObject['kind'];
  readonly key: string;
}

/** What a source reports: differences to what it reported before, and all the problems it has now. */
export interface ObjectsChange {
  readonly upserted: readonly KubernetesObject[];
  readonly removed: readonly ObjectRef[];
  readonly problems: readonly Problem[];
  /**
   * When the pods changed that made this change of an EndpointSlice (annotation
   * `endpoints.kubernetes.io/last-change-trigger-time`), milliseconds since the epoch; only of what has happened just now.
   */
  readonly triggerTime?: number;
}

/** What a change of objects made different. */
export interface Differences {
  /** Keys of Services that differ: themselves owners of load balancers. */
  readonly services: ReadonlySet<string>;
  /** What translation may have read. */
  readonly dependencies: ReadonlySet<Dependency>;
  readonly poolsChanged: boolean;
  /** Names of AddressClaims. */
  readonly claims: ReadonlySet<string>;
}

type Kind = KubernetesObject['kind'];
type ByKey<T> = Map<string, T>;

export class Cluster {
  /** What each source holds, also where an earlier source's object counts. */
  readonly #held: Readonly<Record<ObjectSource, Readonly<Record<Kind, ByKey<KubernetesObject>>>>> = {
    manifests: emptyStore(),
    api: emptyStore(),
  };
  readonly #isOurs: (service: Service) => boolean;
  // What counts, by the object's key.
  readonly #services: ByKey<Service> = new Map();
  /** Keys of Services of which a folder's counts. */
  readonly #ofFolder = new Set<string>();
  /** Services of the API that do not count, because a folder holds one of the same key. */
  readonly #eclipsed: ByKey<Service> = new Map();
  readonly #slices: ByKey<EndpointSlice> = new Map();
  readonly #endpoints: ByKey<Endpoints> = new Map();
  readonly #nodes: ByKey<Node> = new Map();
  readonly #pools: ByKey<AddressPool> = new Map();
  readonly #claims: ByKey<StoredClaim> = new Map();
  /** Service key → its slices, sorted by name; no empty entries. */
  readonly #slicesOf: ByKey<readonly EndpointSlice[]> = new Map();
  #sortedNodes: readonly Node[] | undefined;

  /** `isOurs`: one of a folder that is not takes the place of none of the API. */
  constructor(isOurs: (service: Service) => boolean = () => true) {
    this.#isOurs = isOurs;
  }

  /** Takes a change of one source; a source can only remove what it holds itself. */
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
      this.#held[source][object.kind].set(object.key, object);
      settle(object);
    }
    return { services, dependencies, poolsChanged, claims };
  }

  /** Decides again which Services of folders are ours, after the settings changed. */
  reclassify(): void {
    for (const key of this.#held.manifests.Service.keys()) this.#settle('Service', key, new Set());
  }

  service(key: string): Service | undefined {
    return this.#services.get(key);
  }

  /** Whether the Service that counts is a folder's. */
  isOfFolder(key: string): boolean {
    return this.#ofFolder.has(key);
  }

  /** The Service of the API that does not count, because a folder holds one of the same key. */
  eclipsed(key: string): Service | undefined {
    return this.#eclipsed.get(key);
  }

  services(): IterableIterator<Service> {
    return this.#services.values();
  }

  /** `namespace/name` of each. */
  serviceKeys(): readonly string[] {
    return [...this.#services.values()].map(({ key }) => key);
  }

  /**
   * Sorted by name. The slices of the old Endpoints object only where the Service has no EndpointSlice at all.
   * The same list as before unless one of them has changed.
   */
  slices(key: string): readonly EndpointSlice[] {
    return this.#slicesOf.get(key) ?? this.#endpoints.get(key)?.slices ?? NO_SLICES;
  }

  /** Sorted by name; the same list as before unless a Node has changed. */
  nodes(): readonly Node[] {
    this.#sortedNodes ??= [...this.#nodes.values()].sort(byName);
    return this.#sortedNodes;
  }

  pools(): IterableIterator<AddressPool> {
    return this.#pools.values();
  }

  claim(name: string): StoredClaim | undefined {
    return this.#claims.get(name);
  }

  claims(): IterableIterator<StoredClaim> {
    return this.#claims.values();
  }

  /** How many objects of each kind count, for metrics. */
  counts(): Readonly<Record<Kind, number>> {
    return {
      Service: this.#services.size,
      EndpointSlice: this.#slices.size,
      Endpoints: this.#endpoints.size,
      Node: this.#nodes.size,
      AddressPool: this.#pools.size,
      AddressClaim: this.#claims.size,
    };
  }

  /** Brings the indexes to what the sources now hold of one object; true where that made a difference. */
  #settle(kind: Kind, key: string, dirty: Set<Dependency>): boolean {
    switch (kind) {
      case 'Service': {
        const differs = [
          this.#noteFolder(key),
          replace(this.#eclipsed, key, this.#loser(key)),
          replace(this.#services, key, this.#winner(kind, key)),
        ];
        if (!differs.includes(true)) return false;
        dirty.add(`service ${key}`);
        return true;
      }
      case 'EndpointSlice': {
        const before = this.#slices.get(key);
        const now = this.#winner(kind, key);
        if (!replace(this.#slices, key, now)) return false;
        if (before !== undefined) this.#unlink(before, dirty);
        if (now !== undefined) this.#link(now, dirty);
        return true;
      }
      case 'Endpoints': {
        if (!replace(this.#endpoints, key, this.#winner(kind, key))) return false;
        if (this.#slicesOf.has(key)) return true;
        dirty.add(`endpoints ${key}`);
        return true;
      }
      case 'Node': {
        if (!replace(this.#nodes, key, this.#winner(kind, key))) return false;
        dirty.add('nodes');
        this.#sortedNodes = undefined;
        return true;
      }
      case 'AddressPool':
        return replace(this.#pools, key, this.#winner(kind, key));
      case 'AddressClaim':
        return replace(this.#claims, key, this.#winner(kind, key));
    }
  }

  /** True where it makes a difference: the same Service now comes from a folder, or no longer does. */
  #noteFolder(key: string): boolean {
    const { manifests, api } = this.#held;
    const own = manifests.Service.get(key) as Service | undefined;
    const isOfFolder = own !== undefined && (!api.Service.has(key) || this.#isOurs(own));
    if (isOfFolder === this.#ofFolder.has(key)) return false;
    if (isOfFolder) this.#ofFolder.add(key);
    else this.#ofFolder.delete(key);
    return true;
  }

  #loser(key: string): Service | undefined {
    return this.#ofFolder.has(key) ? (this.#held.api.Service.get(key) as Service | undefined) : undefined;
  }

  #winner<K extends Kind>(kind: K, key: string): Extract<KubernetesObject, { kind: K }> | undefined {
    // What the agents themselves have written is newer than any copy of it.
    const isApiFirst = kind === 'AddressClaim' || (kind === 'Service' && !this.#ofFolder.has(key));
    for (const source of isApiFirst ? objectSources.toReversed() : objectSources) {
      const object = this.#held[source][kind].get(key);
      if (object !== undefined) return object as Extract<KubernetesObject, { kind: K }>;
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

function emptyStore(): Record<Kind, ByKey<KubernetesObject>> {
  return {
    Service: new Map(),
    EndpointSlice: new Map(),
    Endpoints: new Map(),
    Node: new Map(),
    AddressPool: new Map(),
    AddressClaim: new Map(),
  };
}

/** False where the map holds an equal value already: the old one keeps its identity. */
function replace<T>(map: ByKey<T>, key: string, value: T | undefined): boolean {
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
