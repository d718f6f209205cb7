// The kinds of objects that the agent knows, as the API has them. Pure.

import { GATEWAY_API_VERSION } from './gateway/names.ts';
import { ADDRESS_API_VERSION } from './object-names.ts';
import type { KubernetesObject } from './objects.ts';

export type Kind = KubernetesObject['kind'];

export interface KindOfApi {
  /** `v1`, `discovery.k8s.io/v1`. */
  readonly apiVersion: string;
  /** As in the API's paths: `endpointslices`. */
  readonly plural: string;
  /** Objects of this kind have no namespace. */
  readonly isOfCluster?: boolean;
}

const inCore = (plural: string): KindOfApi => ({ apiVersion: 'v1', plural });
const inDiscovery = (plural: string): KindOfApi => ({ apiVersion: 'discovery.k8s.io/v1', plural });
const ofAddresses = (plural: string) => ofCluster({ apiVersion: ADDRESS_API_VERSION, plural });
const ofGateways = (plural: string): KindOfApi => ({ apiVersion: GATEWAY_API_VERSION, plural });
const ofNetworking = (plural: string): KindOfApi => ({ apiVersion: 'networking.k8s.io/v1', plural });
const ofCluster = (kind: KindOfApi): KindOfApi => ({ ...kind, isOfCluster: true });

export const KINDS: Readonly<Record<Kind, KindOfApi>> = {
  Service: inCore('services'),
  EndpointSlice: inDiscovery('endpointslices'),
  Endpoints: inCore('endpoints'),
  Node: ofCluster(inCore('nodes')),
  Pod: inCore('pods'),
  Secret: inCore('secrets'),
  ConfigMap: inCore('configmaps'),
  AddressPool: ofAddresses('addresspools'),
  AddressClaim: ofAddresses('addressclaims'),
  BGPPeer: ofAddresses('bgppeers'),
  GatewayClass: ofCluster(ofGateways('gatewayclasses')),
  Gateway: ofGateways('gateways'),
  ListenerSet: ofGateways('listenersets'),
  HTTPRoute: ofGateways('httproutes'),
  GRPCRoute: ofGateways('grpcroutes'),
  TLSRoute: ofGateways('tlsroutes'),
  TCPRoute: ofGateways('tcproutes'),
  UDPRoute: ofGateways('udproutes'),
  ReferenceGrant: ofGateways('referencegrants'),
  BackendTLSPolicy: ofGateways('backendtlspolicies'),
  Namespace: ofCluster(inCore('namespaces')),
  IngressClass: ofCluster(ofNetworking('ingressclasses')),
  Ingress: ofNetworking('ingresses'),
  NetworkPolicy: ofNetworking('networkpolicies'),
};

export const ALL_KINDS = Object.keys(KINDS) as readonly Kind[];

export function isKind(kind: string): kind is Kind {
  return Object.hasOwn(KINDS, kind);
}
