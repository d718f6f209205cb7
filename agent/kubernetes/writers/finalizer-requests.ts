// Requests that wait until a Service has the agent's finalizer, so that something outside the cluster may be done for it.

import type { CurrentService } from '../current-service.ts';
import { FINALIZER } from './service-patch.ts';

interface FinalizerRequest {
  readonly uid: string;
  readonly promise: Promise<boolean>;
  readonly resolve: (hasFinalizer: boolean) => void;
}

export class FinalizerRequests {
  /** By the Service's key. */
  readonly #requests = new Map<string, readonly FinalizerRequest[]>();

  /** Without `uid`: for any Service of the key. */
  has(key: string, uid?: string): boolean {
    return this.#requests.get(key)?.some((each) => uid === undefined || each.uid === uid) ?? false;
  }

  /** The promise of the same request if that waits already. */
  add(key: string, uid: string): Promise<boolean> {
    const requests = this.#requests.get(key) ?? [];
    const known = requests.find((each) => each.uid === uid);
    if (known !== undefined) return known.promise;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#requests.set(key, [...requests, { uid, promise, resolve }]);
    return promise;
  }

  /** Resolves the Service's requests: true if it has the finalizer and is not being deleted. */
  answer(key: string, service: CurrentService | undefined): void {
    const requests = this.#requests.get(key) ?? [];
    this.#requests.delete(key);
    for (const { uid, resolve } of requests)
      resolve(service?.uid === uid && !service.isDeleting && service.finalizers.includes(FINALIZER));
  }

  refuseAll(): void {
    for (const key of [...this.#requests.keys()]) this.answer(key, undefined);
  }
}
