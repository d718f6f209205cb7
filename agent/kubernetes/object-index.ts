// Finds objects of the Gateway API and Ingresses by the objects that they name: routes by parent, ListenerSets by Gateway,
// BackendTLSPolicies by Service, Ingresses by class, ReferenceGrants and NetworkPolicies by namespace. The keys are the dependencies of
// translation, so that the index also says what a change of an object concerns.
// Owns its index; touches nothing else.

import type { Dependency } from '../model/desired-state.ts';
import {
  type BackendTlsPolicy,
  type ListenerSet,
  meansService,
  type ReferenceGrant,
} from './gateway/gateway-objects.ts';
import { GATEWAY_GROUP } from './gateway/names.ts';
import type { Route } from './gateway/route-objects.ts';
import type { Ingress } from './ingress/ingress-objects.ts';
import type { NetworkPolicy } from './network-policy.ts';
import type { KubernetesObject } from './objects.ts';

type Indexed = Route | ListenerSet | BackendTlsPolicy | ReferenceGrant | Ingress | NetworkPolicy;

/** Where translation finds the object, and what it reads of it; each once. */
export function placesOf(object: KubernetesObject): readonly Dependency[] {
  switch (object.kind) {
    case 'Service':
      return [`service ${object.key}`];
    case 'Node':
      return ['nodes'];
    case 'Secret':
      return [`secret ${object.key}`];
    case 'ConfigMap':
      return [`configmap ${object.key}`];
    case 'GatewayClass':
      return [`gatewayclass ${object.key}`];
    case 'Gateway':
      return [`gateway ${object.key}`];
    case 'Namespace':
      return [`namespace ${object.key}`];
    case 'IngressClass':
      return [`ingressclass ${object.key}`];
    case 'Pod':
      return [`pod ${object.key}`, ...object.addresses.map((address): Dependency => `podaddress ${address}`)];
    default:
      return isIndexed(object) ? indexedPlaces(object) : [];
  }
}

const NONE: readonly never[] = [];

export class ObjectIndex {
  readonly #byPlace = new Map<Dependency, Map<string, Indexed>>();
  readonly #lists = new Map<Dependency, readonly Indexed[]>();

  /** `dirty` gets the places of both. */
  replace(
    before: KubernetesObject | undefined,
    now: KubernetesObject | undefined,
    dirty: Set<Dependency>,
  ): void {
    // An object that stays keeps its position in the list.
    const kept = new Set(now === undefined ? NONE : placesOf(now));
    if (before !== undefined) {
      for (const place of placesOf(before)) {
        dirty.add(place);
        if (!kept.has(place)) this.#remove(place, before);
      }
    }
    if (now !== undefined) {
      for (const place of placesOf(now)) {
        dirty.add(place);
        if (isIndexed(now)) this.#add(place, now);
      }
    }
  }

  /** Unordered; the same list as before unless one of the objects has changed. */
  at(place: Dependency): readonly Indexed[] {
    const objects = this.#byPlace.get(place);
    if (objects === undefined) return NONE;
    const list = this.#lists.get(place) ?? [...objects.values()];
    this.#lists.set(place, list);
    return list;
  }

  #add(place: Dependency, object: Indexed): void {
    this.#lists.delete(place);
    const objects = this.#byPlace.get(place);
    if (objects === undefined) this.#byPlace.set(place, new Map([[identityOf(object), object]]));
    else objects.set(identityOf(object), object);
  }

  #remove(place: Dependency, object: KubernetesObject): void {
    this.#lists.delete(place);
    const objects = this.#byPlace.get(place);
    objects?.delete(identityOf(object));
    if (objects?.size === 0) this.#byPlace.delete(place);
  }
}

function identityOf({ kind, key }: Pick<KubernetesObject, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

function isRoute(object: KubernetesObject): object is Route {
  return object.kind.endsWith('Route');
}

function isIndexed(object: KubernetesObject): object is Indexed {
  return (
    isRoute(object) ||
    ['ListenerSet', 'BackendTLSPolicy', 'ReferenceGrant', 'Ingress', 'NetworkPolicy'].includes(object.kind)
  );
}

function indexedPlaces(object: Indexed): readonly Dependency[] {
  switch (object.kind) {
    case 'ListenerSet': {
      const { group, kind, namespace, name } = object.parent;
      return group === GATEWAY_GROUP && kind === 'Gateway' ? [`listenersets ${namespace}/${name}`] : [];
    }
    case 'BackendTLSPolicy': {
      const services = object.targets.filter(meansService);
      return unique(services.map(({ name }): Dependency => `policies ${object.namespace}/${name}`));
    }
    case 'ReferenceGrant':
      return [`grants ${object.namespace}`];
    case 'Ingress':
      return [`ingresses ${object.className}`];
    case 'NetworkPolicy':
      return [`networkpolicies ${object.namespace}`];
    default:
      return unique(object.parents.flatMap((parent) => parentPlace(parent, object.namespace)));
  }
}

function parentPlace(
  { group, kind, namespace, name }: Route['parents'][number],
  own: string,
): readonly Dependency[] {
  if (group !== GATEWAY_GROUP) return [];
  const key = `${namespace || own}/${name}`;
  if (kind === 'Gateway') return [`routes gateway ${key}`];
  return kind === 'ListenerSet' ? [`routes listenerset ${key}`] : [];
}

function unique(places: readonly Dependency[]): readonly Dependency[] {
  return places.length < 2 ? places : [...new Set(places)];
}
