// What has been reported of objects, so that only what differs is reported again.

import { sameValue } from '../../base/same-value.ts';
import type { KubernetesObject } from '../objects.ts';

export class ReportedObjects {
  /** Identity → the object as it was reported last. */
  readonly #reported = new Map<string, KubernetesObject>();
  /** Identities whose object may differ by now. */
  readonly #touched = new Set<string>();

  touch(identity: string): void {
    this.#touched.add(identity);
  }

  /** What differs since the last call; `now` gives the object that counts by now, where there is one. */
  changes(now: (identity: string) => KubernetesObject | undefined): {
    readonly upserted: readonly KubernetesObject[];
    readonly removed: readonly KubernetesObject[];
  } {
    const upserted: KubernetesObject[] = [];
    const removed: KubernetesObject[] = [];
    for (const identity of this.#touched) {
      const before = this.#reported.get(identity);
      const object = now(identity);
      if (sameValue(before, object)) continue;
      if (object !== undefined) {
        this.#reported.set(identity, object);
        upserted.push(object);
      } else if (before !== undefined) {
        this.#reported.delete(identity);
        removed.push(before);
      }
    }
    this.#touched.clear();
    return { upserted, removed };
  }
}
