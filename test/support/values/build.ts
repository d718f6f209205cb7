// Builders of Kubernetes objects for tests, with defaults for all fields.

import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type {
  Endpoint,
  EndpointPort,
  EndpointSlice,
  KubernetesObject,
  Node,
  Service,
  ServicePort,
} from '../../../agent/kubernetes/objects.ts';

/** A Service of Headgate's class with the address 192.0.2.10 and TCP port 80; `ports` may be numbers. */
export function service(
  given: Partial<Omit<Service, 'ports'>> & {
    readonly ports?: readonly (number | Partial<ServicePort>)[];
  } = {},
): Service {
  const { namespace = 'default', name = 'web', ports = [80] } = given;
  return {
    kind: 'Service',
    key: `${namespace}/${name}`,
    uid: '',
    created: 1_000,
    labels: {},
    annotations: {},
    type: 'LoadBalancer',
    loadBalancerClass: 'headgate.io/agent',
    loadBalancerIP: '192.0.2.10',
    loadBalancerSourceRanges: [],
    externalIPs: [],
    clusterIPs: [],
    headless: false,
    externalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 0,
    affinitySeconds: 0,
    allocateLoadBalancerNodePorts: true,
    publishNotReadyAddresses: false,
    ipFamilies: [],
    ipFamilyPolicy: undefined,
    deleting: false,
    statusIPs: [],
    hasForeignStatus: false,
    ...given,
    namespace,
    name,
    ports: ports.map(servicePort),
  };
}

function servicePort(given: number | Partial<ServicePort>): ServicePort {
  const port = typeof given === 'number' ? { port: given } : given;
  return { name: '', protocol: 'TCP', port: 80, nodePort: 0, appProtocol: '', ...port };
}

/** An EndpointSlice of Service default/web with port 8080 without a name; `endpoints` may be addresses. */
export function slice(
  given: Partial<Omit<EndpointSlice, 'endpoints' | 'ports'>> & {
    readonly endpoints?: readonly (string | Endpoint)[];
    readonly ports?: readonly (number | Partial<EndpointPort>)[];
  } = {},
): EndpointSlice {
  const { namespace = 'default', serviceName = 'web', endpoints = ['10.0.0.1'], ports = [8080] } = given;
  const { name = `${serviceName}-1` } = given;
  const addresses = endpoints.map((each) => (typeof each === 'string' ? endpoint(each) : each));
  return {
    kind: 'EndpointSlice',
    key: `${namespace}/${name}`,
    uid: '',
    family: addresses[0]?.address.includes(':') ? 'v6' : 'v4',
    headless: false,
    triggerTime: 0,
    ...given,
    namespace,
    name,
    serviceName,
    endpoints: addresses,
    ports: ports.map(endpointPort),
  };
}

function endpointPort(given: number | Partial<EndpointPort>): EndpointPort {
  const port = typeof given === 'number' ? { port: given } : given;
  return { name: '', protocol: 'TCP', port: 8080, ...port };
}

/** A ready endpoint without a node; with `terminating` it still serves but is not ready. */
export function endpoint(address: string, given: Partial<Endpoint> = {}): Endpoint {
  const { terminating = false } = given;
  const { ready = !terminating } = given;
  return {
    address,
    ready,
    serving: ready || terminating,
    terminating,
    nodeName: '',
    forZones: undefined,
    forNodes: undefined,
    target: '',
    ...given,
  };
}

export function node(given: Partial<Node> = {}): Node {
  const { name = 'node-1' } = given;
  return {
    kind: 'Node',
    key: name,
    uid: '',
    labels: {},
    internalIPs: ['198.51.100.1'],
    noExecute: false,
    deleting: false,
    ...given,
    name,
  };
}

export function clusterOf(objects: readonly KubernetesObject[]): Cluster {
  const cluster = new Cluster();
  cluster.apply({ upserted: objects, removed: [] }, 'api');
  return cluster;
}
