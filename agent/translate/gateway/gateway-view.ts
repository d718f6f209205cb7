// What the translation of Gateways reads, and the memory of what was read: a value made from objects stays as it is while the
// objects do. Pure.

import type {
  BackendTlsPolicy,
  Gateway,
  GatewayClass,
  ListenerSet,
  ReferenceGrant,
} from '../../kubernetes/gateway/gateway-objects.ts';
import type { Route } from '../../kubernetes/gateway/route-objects.ts';
import type { Service } from '../../kubernetes/objects.ts';
import type { Dependency, RouteParent } from '../../model/desired-state.ts';
import type { SlicesView } from '../pool/route-slices.ts';
import type { PoliciesView } from '../service/policy-clients.ts';

/** The part of the store of objects that translation reads. */
export interface GatewayView extends SlicesView, PoliciesView {
  gatewayClass(name: string): GatewayClass | undefined;
  gateway(key: string): Gateway | undefined;
  /** True if it comes from a folder of manifests of this host. */
  isOfManifest(gateway: Pick<Gateway, 'kind' | 'key'>): boolean;
  listenerSetsOf(gateway: string): Iterable<ListenerSet>;
  /** All kinds of route. */
  routesOf(parent: RouteParent): Iterable<Route>;
  /** The same list as before unless one of them has changed. */
  grantsIn(namespace: string): readonly ReferenceGrant[];
  /** The same list as before unless one of them has changed. */
  policiesOf(service: string): readonly BackendTlsPolicy[];
  /** undefined if the Namespace is not known. */
  namespaceLabels(name: string): Readonly<Record<string, string>> | undefined;
  service(key: string): Service | undefined;
}

type ReadObjects = Pick<GatewayView, 'service' | 'grantsIn' | 'policiesOf'>;

/** The objects that one value is made from. */
export class Reads {
  readonly #view: ReadObjects;
  /** Lists instead of maps, because thousands of them are looked through for each change; each has a few entries. */
  readonly #services: (readonly [key: string, service: Service | undefined])[] = [];
  readonly #grants: (readonly [namespace: string, grants: readonly ReferenceGrant[]])[] = [];
  readonly #policies: (readonly [service: string, policies: readonly BackendTlsPolicy[]])[] = [];
  #dependencies: readonly Dependency[] | undefined;

  constructor(view: ReadObjects) {
    this.#view = view;
  }

  /** Joins several values that are current. */
  static joined(all: readonly Reads[]): Reads {
    const [first] = all;
    if (first === undefined) throw new Error('There is nothing to join');
    const joined = new Reads(first.#view);
    joined.#services.push(...new Map(all.flatMap((each) => each.#services)));
    joined.#grants.push(...new Map(all.flatMap((each) => each.#grants)));
    joined.#policies.push(...new Map(all.flatMap((each) => each.#policies)));
    return joined;
  }

  service(key: string): Service | undefined {
    const service = this.#view.service(key);
    this.#services.push([key, service]);
    return service;
  }

  grantsIn(namespace: string): readonly ReferenceGrant[] {
    const grants = this.#view.grantsIn(namespace);
    this.#grants.push([namespace, grants]);
    return grants;
  }

  policiesOf(service: string): readonly BackendTlsPolicy[] {
    const policies = this.#view.policiesOf(service);
    this.#policies.push([service, policies]);
    return policies;
  }

  /** True while every object is as it was read. */
  areCurrent(): boolean {
    for (const [key, service] of this.#services) if (this.#view.service(key) !== service) return false;
    for (const [key, grants] of this.#grants) if (this.#view.grantsIn(key) !== grants) return false;
    for (const [key, policies] of this.#policies) if (this.#view.policiesOf(key) !== policies) return false;
    return true;
  }

  dependencies(): readonly Dependency[] {
    this.#dependencies ??= [
      ...this.#services.map(([key]) => `service ${key}` as const),
      ...this.#grants.map(([namespace]) => `grants ${namespace}` as const),
      ...this.#policies.map(([key]) => `policies ${key}` as const),
    ];
    return this.#dependencies;
  }
}
