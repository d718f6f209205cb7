// The versions in which the API server has a kind that it does not have in the version that the agent reads: two or more
// requests to the API's discovery, made once.
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api

import { isMapping } from '../../base/validate.ts';
import { groupOf } from '../parse-object.ts';
import { bodyOf } from './api-answer.ts';
import type { ApiStreams } from './kubernetes-api.ts';
import type { ReflectedResource } from './reflector-terms.ts';

/** `gateway.networking.k8s.io/v1alpha2`; empty if it has none. Errors: API_UNREACHABLE, API_CREDENTIALS. */
export async function otherVersions(
  api: ApiStreams,
  { apiVersion, plural }: Pick<ReflectedResource<never>, 'apiVersion' | 'plural'>,
): Promise<readonly string[]> {
  const group = await get(api, `/apis/${groupOf(apiVersion)}`);
  const found: string[] = [];
  for (const { groupVersion } of mappings(group, 'versions')) {
    if (typeof groupVersion !== 'string' || groupVersion === apiVersion) continue;
    const resources = mappings(await get(api, `/apis/${groupVersion}`), 'resources');
    if (resources.some(({ name }) => name === plural)) found.push(groupVersion);
  }
  return found;
}

async function get(api: ApiStreams, path: string): Promise<unknown> {
  return bodyOf(await api.open({ method: 'GET', path }));
}

/** Empty for another answer, such as a refusal. */
function mappings(body: unknown, field: string): readonly Readonly<Record<string, unknown>>[] {
  const list = isMapping(body) ? body[field] : undefined;
  return Array.isArray(list) ? list.filter(isMapping) : [];
}
