// NetworkPolicies and Pods for tests, as their authors write them.

import { parseYamlDocuments } from '../../../agent/base/yaml.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';

function parsed(json: unknown): KubernetesObject {
  const { objects, problems } = parseObject(json, '');
  const [object] = objects;
  if (object === undefined) throw new Error(problems.map(({ message }) => message).join('; '));
  return object;
}

/** `spec`: YAML. */
export function networkPolicy(spec: string, name = 'policy', namespace = 'default'): KubernetesObject {
  const [document] = parseYamlDocuments(spec).documents;
  return parsed({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec: document?.value,
  });
}

export interface PodParts {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly addresses?: readonly string[];
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly phase?: string;
}

/** Pod `web-1` with the label `app: web` and the address 10.0.0.1. */
export function pod({
  name = 'web-1',
  namespace = 'default',
  labels = { app: 'web' },
  addresses = ['10.0.0.1'],
  spec = {},
  phase = 'Running',
}: PodParts = {}): KubernetesObject {
  return parsed({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels },
    spec,
    status: { phase, podIPs: addresses.map((ip) => ({ ip })) },
  });
}
