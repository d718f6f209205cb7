// The objects of the API server, read once for a command: as the agent reads them, without watching. Changes nothing.

import { HeadgateError } from '../../base/errors.ts';
import { parseJson } from '../../base/parse-json.ts';
import { isMapping } from '../../base/validate.ts';
import { refusalText } from '../../kubernetes/api/api-answer.ts';
import type { ApiClient } from '../../kubernetes/api/client.ts';
import { kindsOf, resourcesOf } from '../../kubernetes/api/reflected-kinds.ts';
import { ResourceClient, resourceRequest } from '../../kubernetes/api/resource-client.ts';
import type { KubernetesObject } from '../../kubernetes/objects.ts';
import { parseObject } from '../../kubernetes/parse-object.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { Settings } from '../../settings/settings.ts';
import { apiClient } from '../../sources/cluster-api.ts';

const API_TIMEOUT_MS = 10_000;

export interface ClusterObjects {
  readonly upserted: readonly KubernetesObject[];
  readonly problems: readonly Problem[];
}

/** Errors: SETTINGS_INVALID without a cluster, API_REFUSED, API_UNREACHABLE. */
export async function clusterObjects(settings: Settings): Promise<ClusterObjects> {
  return withClient(settings, async (client) => {
    const upserted: KubernetesObject[] = [];
    const problems: Problem[] = [];
    for (const kind of kindsOf(settings))
      for (const resource of resourcesOf(kind, settings.namespaces, settings.serviceSelector)) {
        const found = await known(client, resource);
        if (found === undefined) continue;
        const own: KubernetesObject[] = [];
        const onItem = (text: string): void => {
          const { apiVersion } = found;
          const read = parseObject({ apiVersion, kind, ...asMapping(text) }, '');
          own.push(...read.objects);
          problems.push(...read.problems);
        };
        await new ResourceClient(client, found).list({}, API_TIMEOUT_MS, onItem, () => own.splice(0));
        upserted.push(...own);
      }
    return { upserted, problems };
  });
}

type Resource = ReturnType<typeof resourcesOf>[number];

/** With the version that the API server knows; undefined if it does not know the kind, and needs not. */
async function known(client: ApiClient, resource: Resource): Promise<Resource | undefined> {
  const { apiVersion, orVersion, isOptional } = resource;
  if (isOptional !== true) return resource;
  for (const version of orVersion === undefined ? [apiVersion] : [apiVersion, orVersion]) {
    const own = { ...resource, apiVersion: version };
    const { status } = await client.request(resourceRequest(own, { limit: '1' }, API_TIMEOUT_MS));
    if (status !== 404) return own;
  }
  return undefined;
}

/** `asked`: `secrets default/shop-tls`, `configmaps default/keys`. One that cannot be read is a problem. Errors: as above. */
export async function namedObjects(settings: Settings, asked: ReadonlySet<string>): Promise<ClusterObjects> {
  return withClient(settings, async (client) => {
    const upserted: KubernetesObject[] = [];
    const problems: Problem[] = [];
    for (const each of asked) {
      const [plural, key = ''] = each.split(' ');
      const [namespace = '', name = ''] = key.split('/');
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`;
      const answer = await client.request({ method: 'GET', path, timeoutMs: API_TIMEOUT_MS });
      const object = `${plural === 'secrets' ? 'Secret' : 'ConfigMap'} ${key}`;
      if (answer.status === 200) {
        const read = parseObject(answer.body, '');
        upserted.push(...read.objects);
        problems.push(...read.problems);
      } else if (answer.status !== 404) {
        const message = `${object}: it cannot be read: ${refusalText(answer)}`;
        problems.push({ object, reason: 'InvalidObject', message });
      }
    }
    return { upserted, problems };
  });
}

async function withClient<T>(settings: Settings, work: (client: ApiClient) => Promise<T>): Promise<T> {
  const client = apiClient(settings);
  if (client === undefined)
    throw new HeadgateError(
      'SETTINGS_INVALID',
      'Cannot read the cluster: name it with --kubeconfig FILE, or run in it with --in-cluster',
      { retry: 'never' },
    );
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

function asMapping(text: string): object {
  const json = parseJson(text);
  return isMapping(json) ? json : {};
}
