// The kinds of objects that the agent reads from the API server, and their requests. Pure.

import { GATEWAY_CONTROLLER, INGRESS_CONTROLLER } from '../class-names.ts';
import { GATEWAY_API_VERSION, GATEWAY_GROUP } from '../gateway/names.ts';
import { ADDRESS_API_VERSION } from '../object-names.ts';
import type { KubernetesObject } from '../objects.ts';
import type { ReflectedResource } from './reflector-terms.ts';

interface KindOfApi
  extends Pick<ReflectedResource<never>, 'apiVersion' | 'orVersion' | 'plural' | 'isOptional'> {
  /** Objects of this kind have no namespace. */
  readonly isOfCluster?: boolean;
  /**
   * Read only once there is an object of this kind that names this agent as its controller: the objects of other
   * controllers cost no memory, no watch and no right.
   */
  readonly after?: 'GatewayClass' | 'IngressClass';
}

/** Only in clusters that have the definitions of deploy/kubernetes/. */
const OF_POOLS = { apiVersion: ADDRESS_API_VERSION, isOfCluster: true, isOptional: true } as const;
const GATEWAY_V1 = { apiVersion: GATEWAY_API_VERSION, isOptional: true } as const;
const OF_GATEWAYS = { ...GATEWAY_V1, after: 'GatewayClass' } as const;
const INGRESS_V1 = { apiVersion: 'networking.k8s.io/v1', isOptional: true } as const;

const API = {
  Service: { apiVersion: 'v1', plural: 'services' },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', plural: 'endpointslices' },
  Node: { apiVersion: 'v1', plural: 'nodes', isOfCluster: true },
  AddressPool: { ...OF_POOLS, plural: 'addresspools' },
  AddressClaim: { ...OF_POOLS, plural: 'addressclaims' },
  GatewayClass: { ...GATEWAY_V1, plural: 'gatewayclasses', isOfCluster: true },
  Gateway: { ...OF_GATEWAYS, plural: 'gateways' },
  ListenerSet: { ...OF_GATEWAYS, plural: 'listenersets' },
  HTTPRoute: { ...OF_GATEWAYS, plural: 'httproutes' },
  GRPCRoute: { ...OF_GATEWAYS, plural: 'grpcroutes' },
  TLSRoute: { ...OF_GATEWAYS, plural: 'tlsroutes' },
  TCPRoute: { ...OF_GATEWAYS, plural: 'tcproutes' },
  UDPRoute: { ...OF_GATEWAYS, plural: 'udproutes' },
  ReferenceGrant: { ...OF_GATEWAYS, plural: 'referencegrants', orVersion: `${GATEWAY_GROUP}/v1beta1` },
  BackendTLSPolicy: { ...OF_GATEWAYS, plural: 'backendtlspolicies' },
  Namespace: {
    apiVersion: 'v1',
    plural: 'namespaces',
    isOfCluster: true,
    isOptional: true,
    after: 'GatewayClass',
  },
  IngressClass: { ...INGRESS_V1, plural: 'ingressclasses', isOfCluster: true },
  Ingress: { ...INGRESS_V1, plural: 'ingresses', after: 'IngressClass' },
} as const satisfies Readonly<Record<string, KindOfApi>>;

export type ReflectedKind = keyof typeof API;

const KINDS = Object.keys(API) as readonly ReflectedKind[];

/** The kinds that the settings ask for. */
export function kindsOf({
  gatewayApi,
  ingress,
}: {
  readonly gatewayApi: boolean;
  readonly ingress: boolean;
}): readonly ReflectedKind[] {
  return KINDS.filter((kind) => {
    const ofClass = classKindOf(kind);
    return ofClass === undefined || (ofClass === 'GatewayClass' ? gatewayApi : ingress);
  });
}

/** The kind of class of a kind, which may be one itself; undefined for Services and what belongs to them. */
export function classKindOf(kind: ReflectedKind): 'GatewayClass' | 'IngressClass' | undefined {
  const ofClass = readAfter(kind) ?? kind;
  return ofClass === 'GatewayClass' || ofClass === 'IngressClass' ? ofClass : undefined;
}

/** See KindOfApi. */
export function readAfter(kind: ReflectedKind): ReflectedKind | undefined {
  const { after }: KindOfApi = API[kind];
  return after;
}

/** `services`. */
export function pluralOf(kind: ReflectedKind): string {
  return API[kind].plural;
}

/** The names of the definitions of the Gateway API's kinds that the agent reads. */
export function gatewayDefinitions(): readonly string[] {
  const ofGateways = Object.values(API).filter(({ apiVersion }) => apiVersion === GATEWAY_API_VERSION);
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
  const { isOfCluster, after, ...resource }: KindOfApi = API[kind];
  const places = isOfCluster || namespaces.length === 0 ? [''] : [...new Set(namespaces)];
  return places.map((namespace) => ({
    ...resource,
    kind,
    namespace,
    labelSelector: kind === 'Service' ? serviceSelector : '',
    weighs: (object) => object.kind !== 'Service' || object.type === 'LoadBalancer',
  }));
}
