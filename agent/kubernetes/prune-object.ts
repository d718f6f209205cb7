// Makes the flat values of objects.ts from checked objects: fills in Kubernetes' defaults and drops unused fields. Pure.

import { compactList, intern } from '../base/compact.ts';
import { labelValue, subdomain } from '../base/name-forms.ts';
import type { Valid } from '../base/validate.ts';
import type { Family } from '../model/load-balancer.ts';
import { IP_ALLOCATED } from './class-names.ts';
import { namedPortsOf, sharedLabels } from './network-policy.ts';
import type {
  endpointsSchema,
  nodeSchema,
  podSchema,
  serviceSchema,
  sliceSchemas,
} from './object-schemas.ts';
import type { Endpoint, EndpointPort, EndpointSlice, Endpoints, Node, Pod, Service } from './objects.ts';

type CheckedSlice = Valid<typeof sliceSchemas.IPv4>;
type CheckedEndpoint = NonNullable<CheckedSlice['endpoints']>[number];
type CheckedSubset = NonNullable<Valid<typeof endpointsSchema>['subsets']>[number];
type CheckedAddress = NonNullable<CheckedSubset['addresses']>[number];

/** Kubernetes' default of `timeoutSeconds`: three hours. */
const AFFINITY_SECONDS = 10800;
/** kubectl's copy of the whole manifest. */
const KUBECTL_COPY = 'kubectl.kubernetes.io/last-applied-configuration';

/** Taints of a Node that does not respond: its members stay (KEP-3458). */
const CONDITION_TAINTS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

export function serviceOf({ metadata, spec, status }: Valid<typeof serviceSchema>): Service {
  const annotations = withoutKubectlCopy(metadata.annotations);
  const clusterIPs = spec.clusterIPs?.length ? spec.clusterIPs : spec.clusterIP ? [spec.clusterIP] : [];
  const affinity = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS;
  return {
    kind: 'Service',
    ...identityOf(metadata),
    created: metadata.creationTimestamp ?? Number.POSITIVE_INFINITY,
    labels: metadata.labels ?? {},
    annotations,
    type: spec.type ?? 'ClusterIP',
    loadBalancerClass: spec.loadBalancerClass ?? undefined,
    loadBalancerIP: spec.loadBalancerIP || undefined,
    loadBalancerSourceRanges: compactList(spec.loadBalancerSourceRanges),
    externalIPs: compactList(spec.externalIPs),
    clusterIPs: compactList(clusterIPs.flatMap(({ address }) => address ?? [])),
    headless: clusterIPs.some(({ headless }) => headless),
    externalTrafficPolicy: spec.externalTrafficPolicy ?? 'Cluster',
    healthCheckNodePort: spec.healthCheckNodePort ?? 0,
    affinitySeconds: spec.sessionAffinity === 'ClientIP' ? affinity : 0,
    allocateLoadBalancerNodePorts: spec.allocateLoadBalancerNodePorts ?? true,
    publishNotReadyAddresses: spec.publishNotReadyAddresses ?? false,
    ipFamilies: compactList(spec.ipFamilies?.map(familyOf)),
    ipFamilyPolicy: spec.ipFamilyPolicy ?? undefined,
    ports: (spec.ports ?? []).map((port) => ({
      name: port.name ?? '',
      protocol: port.protocol ?? 'TCP',
      port: port.port,
      nodePort: port.nodePort ?? 0,
      appProtocol: port.appProtocol ?? '',
    })),
    deleting: typeof metadata.deletionTimestamp === 'number',
    statusIPs: compactList(status?.loadBalancer?.ingress?.flatMap(({ ip }) => ip?.address ?? [])),
    hasForeignStatus:
      (status?.loadBalancer?.ingress?.length ?? 0) > 0 &&
      !status?.conditions?.some((each) => each.type === IP_ALLOCATED && each.status === 'True'),
  };
}

export function withoutKubectlCopy(
  annotations: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const { [KUBECTL_COPY]: _, ...others } = annotations ?? {};
  return others;
}

export function sliceOf(slice: CheckedSlice): EndpointSlice {
  const { metadata } = slice;
  return {
    kind: 'EndpointSlice',
    ...identityOf(metadata),
    serviceName: metadata.labels?.['kubernetes.io/service-name'] ?? '',
    headless: typeof metadata.labels?.['service.kubernetes.io/headless'] === 'string',
    family: slice.addressType === 'IPv6' ? 'v6' : 'v4',
    endpoints: (slice.endpoints ?? []).map(endpointOf),
    ports: compactList(slice.ports?.flatMap(portOf)),
    triggerTime: triggerTimeOf(metadata.annotations),
  };
}

function endpointOf({ addresses, conditions, hints, ...endpoint }: CheckedEndpoint): Endpoint {
  const ready = conditions?.ready ?? true;
  return {
    // The schema requires one; consumers ignore the others (EndpointSlice, field addresses).
    address: addresses[0]?.address ?? '',
    ready,
    serving: conditions?.serving ?? ready,
    terminating: conditions?.terminating ?? false,
    nodeName: intern(endpoint.nodeName ?? ''),
    forZones: hints?.forZones?.map(({ name }) => intern(name)),
    forNodes: hints?.forNodes?.map(({ name }) => name),
    target: targetOf(endpoint.targetRef),
  };
}

/** A port without a number means all ports; it is ignored, as in kube-proxy. */
function portOf(port: NonNullable<CheckedSlice['ports']>[number]): EndpointPort[] {
  if (typeof port.port !== 'number') return [];
  return [{ name: port.name ?? '', protocol: port.protocol ?? 'TCP', port: port.port }];
}

export function endpointsOf({ metadata, subsets }: Valid<typeof endpointsSchema>): Endpoints {
  const identity = identityOf(metadata);
  const triggerTime = triggerTimeOf(metadata.annotations);
  const slices: EndpointSlice[] = [];
  for (const subset of subsets ?? []) {
    const ports = compactList(subset.ports?.flatMap(portOf));
    for (const family of ['v4', 'v6'] as const) {
      const endpoints = subsetEndpoints(subset, family);
      if (endpoints.length === 0) continue;
      const slice = { serviceName: identity.name, headless: false, family, endpoints, ports, triggerTime };
      slices.push({ kind: 'EndpointSlice', ...identity, ...slice });
    }
  }
  return { kind: 'Endpoints', ...identity, slices };
}

function subsetEndpoints(subset: CheckedSubset, family: Family): Endpoint[] {
  const member = (ready: boolean) => (address: CheckedAddress) => {
    const { ip, nodeName, targetRef } = address;
    const conditions = { ready, serving: undefined, terminating: undefined };
    return endpointOf({ addresses: [ip], conditions, nodeName, targetRef, hints: undefined });
  };
  const ofFamily = (address: CheckedAddress) => address.ip.family === family;
  return [
    ...(subset.addresses ?? []).filter(ofFamily).map(member(true)),
    ...(subset.notReadyAddresses ?? []).filter(ofFamily).map(member(false)),
  ];
}

export function nodeOf({ metadata, spec, status }: Valid<typeof nodeSchema>): Node {
  return {
    kind: 'Node',
    key: metadata.name,
    name: metadata.name,
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    internalIPs: compactList(status?.addresses?.flatMap((address) => address ?? [])),
    noExecute: (spec?.taints ?? []).some(
      ({ key, effect }) => effect === 'NoExecute' && !CONDITION_TAINTS.includes(key ?? ''),
    ),
    deleting: typeof metadata.deletionTimestamp === 'number',
  };
}

export function podOf({ metadata, spec, status }: Valid<typeof podSchema>): Pod {
  return {
    kind: 'Pod',
    ...identityOf(metadata),
    addresses: compactList(status?.podIPs?.flatMap((address) => address ?? [])),
    hostNetwork: spec?.hostNetwork ?? false,
    hasEnded: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    labels: sharedLabels(metadata.labels),
    ports: namedPortsOf(spec),
  };
}

function familyOf(family: 'IPv4' | 'IPv6'): Family {
  return family === 'IPv6' ? 'v6' : 'v4';
}

/** '' for a wrong name, which the API server does not check. */
function targetOf(target: CheckedEndpoint['targetRef']): string {
  const { kind, name } = target ?? {};
  return kind && name && labelValue.check(kind) && subdomain.check(name) ? `${kind}/${name}` : '';
}

/** Used by a metric only: 0 for a wrong time. */
function triggerTimeOf(annotations: CheckedSlice['metadata']['annotations']): number {
  const milliseconds = Date.parse(annotations?.['endpoints.kubernetes.io/last-change-trigger-time'] ?? '');
  return Number.isNaN(milliseconds) ? 0 : milliseconds;
}

type Metadata = Pick<Valid<typeof serviceSchema>['metadata'], 'namespace' | 'name' | 'uid'>;

function identityOf({ namespace = 'default', name, uid = '' }: Metadata) {
  return { key: `${namespace}/${name}`, namespace: intern(namespace), name, uid };
}
