// The Services as they stand in the API, for those who write to them: what is pruned away from the objects (conditions,
// finalizers, versions) is kept here in its smallest form.
// Owns one map; filled from the JSON that the reflector parses.

import { type CurrentService, readCurrentService } from './current-service.ts';

export class CurrentServices {
  /** By `namespace/name`. */
  readonly #services = new Map<string, CurrentService>();

  get size(): number {
    return this.#services.size;
  }

  /** undefined where the API has not shown it yet. */
  get(key: string): CurrentService | undefined {
    return this.#services.get(key);
  }

  /** Takes a Service as the API sent it and gives its key; undefined where it cannot be read. */
  put(json: unknown): string | undefined {
    const service = readCurrentService(json);
    if (service === undefined) return undefined;
    const key = `${service.namespace}/${service.name}`;
    this.#services.set(key, service);
    return key;
  }

  /** The Service with this UID is gone; another one that took its name meanwhile stays. */
  delete({ key, uid }: { readonly key: string; readonly uid: string }): void {
    if (this.#services.get(key)?.uid === uid) this.#services.delete(key);
  }

  /**
   * A list of a namespace ('' for all) is complete: what is not among `known` was seen only in one that broke off, and
   * has gone since.
   */
  listed(namespace: string, known: Iterable<{ readonly key: string; readonly uid: string }>): void {
    const uids = new Map<string, string>();
    for (const { key, uid } of known) uids.set(key, uid);
    for (const [key, service] of this.#services) {
      const isOfList = namespace === '' || service.namespace === namespace;
      if (isOfList && uids.get(key) !== service.uid) this.#services.delete(key);
    }
  }
}
