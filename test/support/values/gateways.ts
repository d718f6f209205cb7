// Objects of the Gateway API and Ingresses, each from the JSON that the API would send.

import type { Gateway, GatewayClass } from '../../../agent/kubernetes/gateway/gateway-objects.ts';
import type { Ingress, IngressClass } from '../../../agent/kubernetes/ingress/ingress-objects.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';

type Json = Readonly<Record<string, unknown>>;

const GATEWAY_API = 'gateway.networking.k8s.io/v1';
const INGRESS_API = 'networking.k8s.io/v1';

export function parsed(json: Json): KubernetesObject {
  const { objects, problems } = parseObject(json, '');
  const [object] = objects;
  if (object === undefined) throw new Error(problems.map(({ message }) => message).join('; '));
  return object;
}

export function gatewayClassJson(name = 'edge', controllerName = 'headgate.io/gateway-controller'): Json {
  const metadata = { name, uid: `uid-${name}`, generation: 1 };
  return { apiVersion: GATEWAY_API, kind: 'GatewayClass', metadata, spec: { controllerName } };
}

export function gatewayJson(name = 'edge', spec: Json = {}, metadata: Json = {}, status?: Json): Json {
  return {
    apiVersion: GATEWAY_API,
    kind: 'Gateway',
    metadata: { namespace: 'default', name, uid: `uid-${name}`, generation: 1, ...metadata },
    spec: {
      gatewayClassName: 'edge',
      listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
      ...spec,
    },
    ...(status && { status }),
  };
}

export function routeJson(name: string, parents: readonly Json[], spec: Json = {}, kind = 'HTTPRoute'): Json {
  return {
    apiVersion: GATEWAY_API,
    kind,
    metadata: { namespace: 'default', name, uid: `uid-${name}`, generation: 1 },
    spec: { parentRefs: parents, rules: [{ backendRefs: [{ name: 'web', port: 80 }] }], ...spec },
  };
}

/** A Service for routes only, with one member at `address:port`. */
export function backendObjects(name: string, member: string): readonly Json[] {
  const [address = '', port] = member.split(':');
  const ports = [{ name: 'http', port: 80, targetPort: Number(port), protocol: 'TCP' }];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'default', name },
      spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'default', name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: 'http', port: Number(port), protocol: 'TCP' }],
    },
  ];
}

export function ingressClassJson(name = 'edge', annotations: Json = {}): Json {
  return {
    apiVersion: INGRESS_API,
    kind: 'IngressClass',
    metadata: { name, uid: `uid-${name}`, annotations },
    spec: { controller: 'headgate.io/ingress-controller' },
  };
}

export function ingressJson(name = 'web', spec: Json = {}, annotations: Json = {}): Json {
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const paths = [{ path: '/', pathType: 'Prefix', backend }];
  return {
    apiVersion: INGRESS_API,
    kind: 'Ingress',
    metadata: { namespace: 'default', name, uid: `uid-${name}`, generation: 1, annotations },
    spec: { ingressClassName: 'edge', rules: [{ host: 'example.org', http: { paths } }], ...spec },
  };
}

export const gatewayClass = (...given: Parameters<typeof gatewayClassJson>) =>
  parsed(gatewayClassJson(...given)) as GatewayClass;
export const gateway = (...given: Parameters<typeof gatewayJson>) => parsed(gatewayJson(...given)) as Gateway;
export const ingressClass = (...given: Parameters<typeof ingressClassJson>) =>
  parsed(ingressClassJson(...given)) as IngressClass;
export const ingress = (...given: Parameters<typeof ingressJson>) => parsed(ingressJson(...given)) as Ingress;

/** To be created in an API server, which gives objects their UIDs and generations. */
export function asNew(object: Json): Json {
  const { uid: _, generation: __, ...metadata } = object.metadata as Json;
  return { ...object, metadata };
}
