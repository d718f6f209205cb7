// The kinds of objects that the agent reads from the API server, and their requests. Pure.

import { ADDRESS_API_VERSION } from '../object-names.ts';
import type { KubernetesObject } from '../objects.ts';
import type { ReflectedResource } from './reflector-terms.ts';

interface KindOfApi extends Pick<ReflectedResource<never>, 'apiVersion' | 'plural' | 'isOptional'> {
  /** Objects of this kind have no namespace. */
  readonly isOfCluster?: boolean;
}

/** Only in clusters that have the definitions of deploy/crds/. */
const OPTIONAL = { apiVersion: ADDRESS_API_VERSION, isOfCluster: true, isOptional: true } as const;

const API = {
  Service: { apiVersion: 'v1', plural: 'services' },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', plural: 'endpointslices' },
  Node: { apiVersion: 'v1', plural: 'nodes', isOfCluster: true },
  AddressPool: { ...OPTIONAL, plural: 'addresspools' },
  AddressClaim: { ...OPTIONAL, plural: 'addressclaims' },
} as const satisfies Readonly<Record<string, KindOfApi>>;

export type ReflectedKind = keyof typeof API;
export const KINDS = Object.keys(API) as readonly ReflectedKind[];

/** One per namespace, or one for all if `namespaces` is empty. `serviceSelector` as in kubectl's -l. */
export function resourcesOf(
  kind: ReflectedKind,
  namespaces: readonly string[],
  serviceSelector: string,
): Omit<ReflectedResource<KubernetesObject>, 'parse'>[] {
  const { isOfCluster, ...resource }: KindOfApi = API[kind];
  const places = isOfCluster || namespaces.length === 0 ? [''] : [...new Set(namespaces)];
  return places.map((namespace) => ({
    ...resource,
    kind,
    namespace,
    labelSelector: kind === 'Service' ? serviceSelector : '',
    weighs: (object) => object.kind !== 'Service' || object.type === 'LoadBalancer',
  }));
}
