// The kinds of objects that the agent reads from the API server, and their requests. Pure.

import { GATEWAY_CONTROLLER, INGRESS_CONTROLLER } from '../class-names.ts';
import { GATEWAY_API_VERSION, GATEWAY_GROUP } from '../gateway/names.ts';
import { KINDS, type Kind } from '../kinds.ts';
import type { KubernetesObject } from '../objects.ts';
import type { ReflectedResource } from './reflector-terms.ts';

interface Reading extends Pick<ReflectedResource<never>, 'orVersion' | 'isOptional'> {
  /**
   * Read only once there is an object of this kind that names this agent as its controller: the objects of other
   * controllers cost no memory, no watch and no right.
   */
  readonly after?: 'GatewayClass' | 'IngressClass';
  /** Or once a pool needs the kind. */
  readonly orAfterPool?: boolean;
  /** Only with the setting `enforceNetworkPolicy`. */
  readonly isForPolicies?: boolean;
}

/** Only in clusters that have its definition. */
const OPTIONAL = { isOptional: true } as const;
const OF_POLICIES = { isForPolicies: true } as const;
const OF_GATEWAYS = { ...OPTIONAL, after: 'GatewayClass' } as const;

const READ = {
  Service: {},
  EndpointSlice: {},
  Node: {},
  AddressPool: OPTIONAL,
  AddressClaim: OPTIONAL,
  BGPPeer: OPTIONAL,
  GatewayClass: OPTIONAL,
  Gateway: OF_GATEWAYS,
  ListenerSet: OF_GATEWAYS,
  HTTPRoute: OF_GATEWAYS,
  GRPCRoute: OF_GATEWAYS,
  TLSRoute: OF_GATEWAYS,
  TCPRoute: OF_GATEWAYS,
  UDPRoute: OF_GATEWAYS,
  ReferenceGrant: { ...OF_GATEWAYS, orVersion: `${GATEWAY_GROUP}/v1beta1` },
  BackendTLSPolicy: OF_GATEWAYS,
  Namespace: { ...OPTIONAL, after: 'GatewayClass', orAfterPool: true },
  IngressClass: OPTIONAL,
  Ingress: { ...OPTIONAL, after: 'IngressClass' },
  NetworkPolicy: OF_POLICIES,
  Pod: OF_POLICIES,
} as const satisfies Partial<Record<Kind, Reading>>;

export type ReflectedKind = keyof typeof READ;

const READ_KINDS = Object.keys(READ) as readonly ReflectedKind[];

/** The kinds that the settings ask for. */
export function kindsOf({
  gatewayApi,
  ingress,
  enforceNetworkPolicy = 'off',
}: {
  readonly gatewayApi: boolean;
  readonly ingress: boolean;
  readonly enforceNetworkPolicy?: 'off' | 'ingress';
}): readonly ReflectedKind[] {
  return READ_KINDS.filter((kind) => {
    const ofClass = classKindOf(kind);
    const { orAfterPool = false, isForPolicies = false }: Reading = READ[kind];
    if (isForPolicies) return enforceNetworkPolicy !== 'off';
    return orAfterPool || ofClass === undefined || (ofClass === 'GatewayClass' ? gatewayApi : ingress);
  });
}

/** The kind of class of a kind, which may be one itself; undefined for Services and what belongs to them. */
export function classKindOf(kind: ReflectedKind): 'GatewayClass' | 'IngressClass' | undefined {
  const ofClass = readAfter(kind) ?? kind;
  return ofClass === 'GatewayClass' || ofClass === 'IngressClass' ? ofClass : undefined;
}

/** See Reading. */
export function readAfter(kind: ReflectedKind): ReflectedKind | undefined {
  const { after }: Reading = READ[kind];
  return after;
}

/** Whether the kind is read once a pool is for namespaces with certain labels. */
export function isReadForPools(kind: ReflectedKind): boolean {
  const { orAfterPool = false }: Reading = READ[kind];
  return orAfterPool;
}

/** A pool for namespaces with certain labels. */
export function selectsNamespaces(object: KubernetesObject): boolean {
  return object.kind === 'AddressPool' && object.allowed?.namespaceSelector !== undefined;
}

/** The names of the definitions of the Gateway API's kinds that the agent reads. */
export function gatewayDefinitions(): readonly string[] {
  const ofGateways = READ_KINDS.map((kind) => KINDS[kind]).filter(
    ({ apiVersion }) => apiVersion === GATEWAY_API_VERSION,
  );
  return ofGateways.map(({ plural }) => `${plural}.${GATEWAY_GROUP}`);
}

/** A class that makes the agent read the kinds of its API. */
export function isOwnClass(object: KubernetesObject): boolean {
  if (object.kind === 'GatewayClass') return object.controllerName === GATEWAY_CONTROLLER;
  return object.kind === 'IngressClass' && object.controller === INGRESS_CONTROLLER;
}

/** One per namespace, or one for all if `namespaces` is empty. `serviceSelector` as in kubectl's -l. */
export function resourcesOf(
  kind: ReflectedKind,
  namespaces: readonly string[],
  serviceSelector: string,
): (Omit<ReflectedResource<KubernetesObject>, 'parse'> & { readonly kind: ReflectedKind })[] {
  const { isOfCluster, ...ofApi } = KINDS[kind];
  const { after, orAfterPool, isForPolicies, ...reading }: Reading = READ[kind];
  const places = isOfCluster || namespaces.length === 0 ? [''] : [...new Set(namespaces)];
  return places.map((namespace) => ({
    ...ofApi,
    ...reading,
    kind,
    namespace,
    labelSelector: kind === 'Service' ? serviceSelector : '',
    weighs: (object) => object.kind !== 'Service' || object.type === 'LoadBalancer',
  }));
}
