// How a kind of objects is asked for, in all namespaces or in one. Pure.

import type { ApiRequest } from './kubernetes-api.ts';
import type { ReflectedResource } from './reflector-terms.ts';

type Resource = Pick<ReflectedResource<unknown>, 'apiVersion' | 'plural' | 'namespace' | 'labelSelector'>;

export function resourceRequest(
  { apiVersion, plural, namespace, labelSelector }: Resource,
  query: Readonly<Record<string, string>>,
  timeoutMs: number,
): ApiRequest {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return {
    method: 'GET',
    path: `${group}${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}`,
    query: labelSelector === '' ? query : { ...query, labelSelector },
    timeoutMs,
  };
}

/** What could not be done, for a message. */
export function cannot(verb: 'list' | 'watch', { plural, namespace }: Resource): string {
  return `Cannot ${verb} ${plural}${namespace === '' ? '' : ` of namespace ${namespace}`}`;
}
