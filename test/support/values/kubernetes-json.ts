// Kubernetes objects for tests in the form that a user or the API server writes, as values for YAML or JSON.

import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';

export type Json = Readonly<Record<string, unknown>>;

/** A Service of type LoadBalancer with port 80. */
export function serviceJson(
  name = 'web',
  { spec = {}, metadata = {} }: { readonly spec?: Json; readonly metadata?: Json } = {},
): Json {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, ...metadata },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
  };
}

/** An IPv4 EndpointSlice of Service `web` with port 8080. */
export function sliceJson(
  name = 'web-abc',
  addresses: readonly string[] = ['10.0.0.1'],
  more: Json = {},
): Json {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ...more,
  };
}

export function endpointsJson(name = 'web', subsets: readonly Json[] = []): Json {
  return { apiVersion: 'v1', kind: 'Endpoints', metadata: { name }, subsets };
}

export function nodeJson(
  name = 'node-1',
  { metadata = {}, ...more }: Json & { readonly metadata?: Json } = {},
): Json {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...metadata },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
    ...more,
  };
}

export function listJson(items: readonly unknown[]): Json {
  return { apiVersion: 'v1', kind: 'List', items };
}

/** Parses JSON with exactly one valid object. */
export function parsedObject(json: unknown): KubernetesObject {
  const { objects, problems } = parseObject(json, '');
  const [object] = objects;
  if (object === undefined || objects.length > 1 || problems.length > 0) {
    throw new Error(`Not one good object: ${problems.map(({ message }) => message).join('; ')}`);
  }
  return object;
}
