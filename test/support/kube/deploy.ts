// Applies the objects of `deploy/kubernetes/` to a real API server, and gives a client with an agent's rights.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMapping } from '../../../agent/base/validate.ts';
import { parseYamlDocuments } from '../../../agent/base/yaml.ts';
import { ApiClient } from '../../../agent/kubernetes/api/client.ts';
import { ADDRESS_API_VERSION } from '../../../agent/kubernetes/object-names.ts';
import { until } from '../basics/until.ts';
import type { Kube } from './kube.ts';

const deployFolder = fileURLToPath(new URL('../../../deploy', import.meta.url));
/** In the order of the objects' dependencies. */
const INSTALL = join(deployFolder, 'kubernetes/install.yaml');
export const NAMESPACE = 'headgate-system';

/** The objects in a file of YAML. */
export async function objectsIn(path: string): Promise<readonly DeployedObject[]> {
  const { documents, errors } = parseYamlDocuments(await readFile(path, 'utf8'));
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  return documents.flatMap(({ value }) => (isMapping(value) ? [value as never] : []));
}

export interface DeployedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export async function deploy(kube: Kube): Promise<void> {
  for (const object of await objectsIn(INSTALL)) await kube.must('POST', collectionOf(object), object);
}

/** The objects of another file below `deploy/`, as `kubectl apply -n NAMESPACE` creates them, or without `-n`. */
export async function apply(kube: Kube, file: string, namespace?: string): Promise<void> {
  for (const object of await objectsIn(join(deployFolder, file))) {
    const metadata = namespace === undefined ? object.metadata : { namespace, ...object.metadata };
    await kube.must('POST', collectionOf({ ...object, metadata }), { ...object, metadata });
  }
}

/** Headgate's CRDs only; returns once they are served. */
export async function deployDefinitions(kube: Kube): Promise<void> {
  const definitions = (await objectsIn(INSTALL)).filter(({ kind }) => kind === 'CustomResourceDefinition');
  for (const definition of definitions) await kube.must('POST', collectionOf(definition), definition);
  for (const { metadata } of definitions) {
    const path = `/apis/${ADDRESS_API_VERSION}/${metadata.name.split('.', 1)[0]}`;
    await until(`${path} is served`, async () => (await kube.api('GET', path)).status === 200);
  }
}

/** With the agent's account. */
export function agentClient(kube: Kube): Promise<ApiClient> {
  return clientOf(kube, NAMESPACE, 'headgate');
}

/** With a token of its own. */
export async function clientOf(kube: Kube, namespace: string, account: string): Promise<ApiClient> {
  const path = await kubeconfigOf(kube, namespace, account);
  return new ApiClient({ credentials: { kind: 'Kubeconfig', path }, version: '0.0.0' });
}

/** A kubeconfig with a token of the account, for a process. */
export async function kubeconfigOf(kube: Kube, namespace: string, account: string): Promise<string> {
  const path = join(kube.directory, `${account}.kubeconfig`);
  await kube.writeKubeconfig(path, { token: await kube.serviceAccountToken(namespace, account) });
  return path;
}

/** The path under which the API server has objects of this kind. */
export function collectionOf({ apiVersion, kind, metadata: { namespace } }: DeployedObject): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${kind.toLowerCase()}s`;
  return namespace === undefined ? `${group}/${plural}` : `${group}/namespaces/${namespace}/${plural}`;
}
