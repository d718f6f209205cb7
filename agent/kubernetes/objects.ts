// Kubernetes objects, pruned to the fields that Headgate reads, as flat values with Kubernetes' defaults filled in.
// One parser makes them from manifests and from the API alike (parse-object.ts).

import type { Family, Protocol } from '../model/load-balancer.ts';
import type { StoredClaim } from './address-claim.ts';
import type { AddressPool } from './address-pool.ts';

export type KubernetesObject = Service | EndpointSlice | Endpoints | Node | AddressPool | StoredClaim;

export interface Service {
  readonly kind: 'Service';
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** '' in a hand-written manifest. */
  readonly uid: string;
  /** Milliseconds since the epoch; Infinity where the manifest does not say, so that it counts as the youngest. */
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  readonly loadBalancerClass: string | undefined;
  readonly loadBalancerIP: string | undefined;
  /** As written; empty where the field is absent. */
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
  /** Empty where the manifest does not say. */
  readonly ipFamilies: readonly Family[];
  readonly ipFamilyPolicy: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack' | undefined;
  readonly ports: readonly ServicePort[];
  /** `metadata.deletionTimestamp` is set: it only waits for finalizers. */
  readonly deleting: boolean;
  /** `status.loadBalancer.ingress[].ip`, in order. */
  readonly statusIPs: readonly string[];
}

export interface ServicePort {
  /** '' where unnamed. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  /** 0 where none is allocated. */
  readonly nodePort: number;
  readonly appProtocol: string;
}

export interface EndpointSlice {
  readonly kind: 'EndpointSlice';
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** From label `kubernetes.io/service-name`; '' where the slice belongs to no Service. */
  readonly serviceName: string;
  /** FQDN slices are dropped by the parser with a Problem. */
  readonly family: Family;
  readonly endpoints: readonly Endpoint[];
  readonly ports: readonly EndpointPort[];
  /** `endpoints.kubernetes.io/last-change-trigger-time`, milliseconds; 0 where absent. */
  readonly triggerTime: number;
}

export interface Endpoint {
  /** `addresses[0]`, canonical. */
  readonly address: string;
  /** The nil rules are applied: ready nil is true, serving nil is ready, terminating nil is false. */
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly nodeName: string;
  /** undefined where the endpoint has no such hint. */
  readonly forZones: readonly string[] | undefined;
  readonly forNodes: readonly string[] | undefined;
  /** `targetRef` as `Pod/name`, '' where absent. */
  readonly target: string;
}

export interface EndpointPort {
  /** '' where unnamed. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

/** The old Endpoints object, already in the shape of slices (one per subset and family). */
export interface Endpoints {
  readonly kind: 'Endpoints';
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly slices: readonly EndpointSlice[];
}

export interface Node {
  readonly kind: 'Node';
  /** The name alone: Nodes have no namespace. */
  readonly key: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Canonical InternalIPs, in order. */
  readonly internalIPs: readonly string[];
  /** Has a NoExecute taint other than those that only say that the node does not answer. */
  readonly noExecute: boolean;
  /** `metadata.deletionTimestamp` is set. */
  readonly deleting: boolean;
}
