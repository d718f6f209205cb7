// Kubernetes objects as flat values: the fields that Headgate reads, with Kubernetes' defaults filled in.
// parse-object.ts makes them, from manifests and from the API.

import type { Family, Protocol } from '../model/load-balancer.ts';
import type { StoredClaim } from './address-claim.ts';
import type { AddressPool } from './address-pool.ts';
import type { StoredPeer } from './bgp-peer.ts';
import type { ConfigMap, Secret } from './certificate-objects.ts';
import type { GatewayApiObject } from './gateway/gateway-objects.ts';
import type { Ingress, IngressClass } from './ingress/ingress-objects.ts';
import type { Labels, NamedPort, NetworkPolicy } from './network-policy.ts';

export type KubernetesObject =
  | Service
  | EndpointSlice
  | Endpoints
  | Node
  | Pod
  | Secret
  | ConfigMap
  | AddressPool
  | StoredClaim
  | StoredPeer
  | GatewayApiObject
  | IngressClass
  | Ingress
  | NetworkPolicy;

interface NamespacedObject {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** '' in a manifest without one. */
  readonly uid: string;
}

export interface Service extends NamespacedObject {
  readonly kind: 'Service';
  /** Milliseconds since the epoch; Infinity if unknown: then the Service counts as the youngest. */
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  readonly loadBalancerClass: string | undefined;
  readonly loadBalancerIP: string | undefined;
  /** Unchecked; empty if the field is absent. */
  readonly loadBalancerSourceRanges: readonly string[];
  readonly externalIPs: readonly string[];
  /** Without 'None'; empty for a headless Service. */
  readonly clusterIPs: readonly string[];
  readonly headless: boolean;
  readonly externalTrafficPolicy: 'Cluster' | 'Local';
  readonly healthCheckNodePort: number;
  /** Seconds; 0 for sessionAffinity None. */
  readonly affinitySeconds: number;
  readonly allocateLoadBalancerNodePorts: boolean;
  readonly publishNotReadyAddresses: boolean;
  /** Empty if the field is absent. */
  readonly ipFamilies: readonly Family[];
  readonly ipFamilyPolicy: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack' | undefined;
  readonly ports: readonly ServicePort[];
  /** `metadata.deletionTimestamp` is set: the Service waits for finalizers. */
  readonly deleting: boolean;
  /** `status.loadBalancer.ingress[].ip`, in order. */
  readonly statusIPs: readonly string[];
  /**
   * Its status shows addresses or names, and no agent says that it gave them; false in a manifest. A snapshot of an older
   * agent lacks the field.
   */
  readonly hasForeignStatus: boolean;
}

export interface ServicePort {
  /** '' for none. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  /** 0 for none. */
  readonly nodePort: number;
  readonly appProtocol: string;
}

export interface EndpointSlice extends NamespacedObject {
  readonly kind: 'EndpointSlice';
  /** Label `kubernetes.io/service-name`; '' for none. */
  readonly serviceName: string;
  /** It says that it is of a headless Service, which any writer of slices may say: kube-proxy ignores it. */
  readonly headless: boolean;
  readonly family: Family;
  readonly endpoints: readonly Endpoint[];
  readonly ports: readonly EndpointPort[];
  /** `endpoints.kubernetes.io/last-change-trigger-time`, milliseconds since the epoch; 0 if absent. */
  readonly triggerTime: number;
}

export interface Endpoint {
  /** `addresses[0]`, canonical. */
  readonly address: string;
  /** Kubernetes' defaults are applied: ready is true, serving is as ready, terminating is false. */
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly nodeName: string;
  /** undefined without such a hint. */
  readonly forZones: readonly string[] | undefined;
  readonly forNodes: readonly string[] | undefined;
  /** `targetRef` as `Pod/name`, '' for none. */
  readonly target: string;
}

export interface EndpointPort {
  /** '' for none. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

/** The old Endpoints object as slices, one per subset and family. */
export interface Endpoints extends NamespacedObject {
  readonly kind: 'Endpoints';
  readonly slices: readonly EndpointSlice[];
}

export interface Node {
  readonly kind: 'Node';
  /** The name: Nodes have no namespace. */
  readonly key: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Canonical InternalIPs, in order. */
  readonly internalIPs: readonly string[];
  /** The Node has a NoExecute taint, other than those of a Node that does not respond. */
  readonly noExecute: boolean;
  /** `metadata.deletionTimestamp` is set. */
  readonly deleting: boolean;
}

/** Read only to know that an address of an EndpointSlice is a pod's, and which NetworkPolicies select the pod. */
export interface Pod extends NamespacedObject {
  readonly kind: 'Pod';
  /** Canonical. */
  readonly addresses: readonly string[];
  /** It has the addresses of its Node. */
  readonly hostNetwork: boolean;
  /** All its containers have ended: another pod may have its addresses. */
  readonly hasEnded: boolean;
  /** One value for all pods with the same labels. */
  readonly labels: Labels;
  /** Ports of its containers that have a name. */
  readonly ports: readonly NamedPort[];
}
