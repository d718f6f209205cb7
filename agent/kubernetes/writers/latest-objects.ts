// Reads and writes the objects of one kind in the API, and keeps the newest version of each that this agent knows: its own
// write or read, until the watch shows another version than it did then.

import { accept } from '../api/api-answer.ts';
import type { ApiRequest, ApiResponse, KubernetesApi } from '../api/kubernetes-api.ts';

export interface LatestObjectsOptions<T> {
  readonly api: KubernetesApi;
  /** The object as the watch shows it. */
  readonly shown: (key: string) => T | undefined;
  readonly pathOf: (key: string) => string;
  /** undefined if the JSON is no such object. */
  readonly parse: (json: unknown) => T | undefined;
}

export class LatestObjects<T extends { readonly resourceVersion: string }> {
  readonly #options: LatestObjectsOptions<T>;
  /** Key → what this agent wrote or read (undefined: there was none), and the version that the watch showed then. */
  readonly #own = new Map<
    string,
    { readonly object: T | undefined; readonly shownVersion: string | undefined }
  >();

  constructor(options: LatestObjectsOptions<T>) {
    this.#options = options;
  }

  get(key: string): T | undefined {
    const shown = this.#options.shown(key);
    const own = this.#own.get(key);
    if (own !== undefined && shown?.resourceVersion === own.shownVersion) return own.object;
    this.#own.delete(key);
    return shown;
  }

  /** Gives what the API server has; undefined if there is none. Errors: an Error with the reason. */
  async read(key: string): Promise<T | undefined> {
    const { pathOf, parse } = this.#options;
    const path = pathOf(key);
    const response = await this.request(key, { method: 'GET', path });
    if (response.status === 404) return undefined;
    const object = parse(accept(response));
    if (object === undefined) throw new Error(`Cannot read the object at "${path}"`);
    return object;
  }

  /** Sends a request whose answer is the object. */
  async request(key: string, request: ApiRequest): Promise<ApiResponse> {
    const { api, shown, parse } = this.#options;
    const shownVersion = shown(key)?.resourceVersion;
    const response = await api.request(request);
    const { status, body } = response;
    const isDeleted = status === 404 || (status === 200 && request.method === 'DELETE');
    if (isDeleted) this.#own.set(key, { object: undefined, shownVersion });
    else if (status === 200 || status === 201) this.#own.set(key, { object: parse(body), shownVersion });
    return response;
  }

  /** From now on the object is what the watch shows. */
  delete(key: string): void {
    this.#own.delete(key);
  }

  clear(): void {
    this.#own.clear();
  }
}
