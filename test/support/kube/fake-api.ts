// An API server in memory, for the faults that a real one does not have on demand: objects with resourceVersions,
// optimistic locking, merge patches; and a hook that answers or fails instead.

import type { ApiRequest, ApiResponse, KubernetesApi } from '../../../agent/kubernetes/api/kubernetes-api.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind, for tests to look into.
export type Json = any;

export class FakeApi implements KubernetesApi {
  /** By path. */
  readonly objects = new Map<string, Json>();
  readonly requests: ApiRequest[] = [];
  /** Called first: its answer counts instead of the real one; it may throw, or be late. */
  fault: (request: ApiRequest) => ApiResponse | undefined | Promise<ApiResponse | undefined> = () =>
    undefined;
  #version = 100;

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.requests.push(request);
    return (await this.fault(request)) ?? this.carryOut(request);
  }

  close(): void {}

  put(path: string, object: Json): Json {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    const stored = { ...object, metadata };
    this.objects.set(path, stored);
    return stored;
  }

  /** The real answer. */
  carryOut({ method, path, body }: ApiRequest): ApiResponse {
    const own = path.replace(/\/status$/, '');
    const json = body as Json;
    if (method === 'POST') {
      const created = `${own}/${json.metadata.name}`;
      if (this.objects.has(created)) return refusal(409, 'AlreadyExists');
      return answer(201, this.put(created, json));
    }
    const stored = this.objects.get(own);
    if (stored === undefined) return refusal(404, 'NotFound');
    if (method === 'GET') return answer(200, stored);
    if (method === 'DELETE') {
      if (json?.preconditions?.resourceVersion !== stored.metadata.resourceVersion)
        return refusal(409, 'Conflict');
      this.objects.delete(own);
      return answer(200, {});
    }
    const { resourceVersion = stored.metadata.resourceVersion, uid = stored.metadata.uid } =
      json.metadata ?? {};
    if (resourceVersion !== stored.metadata.resourceVersion || uid !== stored.metadata.uid)
      return refusal(409, 'Conflict');
    return answer(200, this.put(own, method === 'PATCH' ? merged(stored, json) : json));
  }
}

export function answer(status: number, body: unknown, headers: Record<string, string> = {}): ApiResponse {
  return { status, headers, body: structuredClone(body) };
}

export function refusal(status: number, reason: string, headers: Record<string, string> = {}): ApiResponse {
  return answer(status, { kind: 'Status', reason, message: `${reason} as the test wants it` }, headers);
}

/** RFC 7396. */
function merged(target: Json, patch: Json): Json {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch;
  const result = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name] ?? {}, value);
  }
  return result;
}
