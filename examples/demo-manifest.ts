// The manifests of the demonstration, written as one should write a file that somebody watches: whole, by a rename.

import { rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface ManifestEndpoint {
  readonly name: string;
  readonly address: string;
  /** `leaving`: a pod that terminates but still serves. */
  readonly state: 'ready' | 'leaving';
}

/** A Service of type LoadBalancer on one port of 127.0.0.1, and the EndpointSlice of its pods. */
export function manifestText(
  name: string,
  port: number,
  memberPort: number,
  endpoints: readonly ManifestEndpoint[],
): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: ${name}
  annotations:
    headgate.io/load-balancer-ips: 127.0.0.1
spec:
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

/** Resolves when the new text is what a reader finds. */
export async function writeManifest(path: string, text: string): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.draft`);
  await writeFile(draft, text);
  await rename(draft, path);
}
