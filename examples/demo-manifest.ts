// The manifests of the demonstration. A rename replaces a file, so that the agent never reads half of it.

import { rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface ManifestEndpoint {
  readonly name: string;
  readonly address: string;
  /** A leaving endpoint terminates but still serves. */
  readonly state: 'ready' | 'leaving';
}

/** A Service of type LoadBalancer on one port of 127.0.0.1, and the EndpointSlice of its pods. */
export function manifestText(
  name: string,
  port: number,
  memberPort: number,
  endpoints: readonly ManifestEndpoint[],
  annotations: Readonly<Record<string, string>> = {},
): string {
  const more = Object.entries(annotations).map(([key, value]) => `    headgate.io/${key}: ${value}\n`);
  return `apiVersion: v1
kind: Service
metadata:
  name: ${name}
  annotations:
    headgate.io/load-balancer-ips: 127.0.0.1
${more.join('')}spec:
  type: LoadBalancer
  ports:
    - port: ${port}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: ${name}-1
  labels:
    kubernetes.io/service-name: ${name}
addressType: IPv4
ports:
  - port: ${memberPort}
${endpoints.length === 0 ? 'endpoints: []\n' : `endpoints:\n${endpoints.map(endpointText).join('')}`}`;
}

function endpointText({ name, address, state }: ManifestEndpoint): string {
  const conditions = state === 'ready' ? 'ready: true' : 'ready: false, serving: true, terminating: true';
  return `  - addresses: [${address}]
    conditions: { ${conditions} }
    targetRef: { kind: Pod, name: ${name} }
`;
}

/** Resolves when a reader finds the new text. */
export async function writeManifest(path: string, text: string): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.draft`);
  await writeFile(draft, text);
  await rename(draft, path);
}
