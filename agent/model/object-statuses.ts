// The statuses that the owners give to objects, by object: a route has a part of each owner that it is attached to.
// Only translation changes it.

import { differing } from './differing.ts';
import type { OwnerKey } from './load-balancer.ts';
import type { ObjectStatus, StatusKind } from './object-status.ts';

/** `HTTPRoute default/api`, `GatewayClass edge`. */
export type StatusName = string;

export function statusName({
  kind,
  namespace,
  name,
}: Pick<ObjectStatus, 'kind' | 'namespace' | 'name'>): StatusName {
  return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

/** What `statusName()` was made from. */
export function subjectOfName(status: StatusName): {
  readonly kind: StatusKind;
  readonly namespace: string;
  readonly name: string;
} {
  const [kind, key = ''] = status.split(' ', 2);
  const [name = '', namespace = ''] = key.split('/', 2).reverse();
  return { kind: kind as StatusKind, namespace, name };
}

const NONE: readonly never[] = [];

export class ObjectStatuses {
  readonly #ofOwner = new Map<OwnerKey, readonly ObjectStatus[]>();
  readonly #parts = new Map<StatusName, Map<OwnerKey, ObjectStatus>>();

  /** Replaces the statuses that an owner gives, at most one for each object. True if one of them is another value. */
  update(owner: OwnerKey, statuses: readonly ObjectStatus[]): boolean {
    const { gone, fresh } = differing(this.#ofOwner.get(owner) ?? NONE, statuses);
    for (const status of gone) {
      const name = statusName(status);
      const parts = this.#parts.get(name);
      parts?.delete(owner);
      if (parts?.size === 0) this.#parts.delete(name);
    }
    for (const status of fresh) {
      const name = statusName(status);
      const parts = this.#parts.get(name) ?? new Map<OwnerKey, ObjectStatus>();
      this.#parts.set(name, parts.set(owner, status));
    }
    if (statuses.length === 0) this.#ofOwner.delete(owner);
    else this.#ofOwner.set(owner, statuses);
    return gone.size + fresh.length > 0;
  }

  of(owner: OwnerKey): readonly ObjectStatus[] {
    return this.#ofOwner.get(owner) ?? NONE;
  }

  /** The parts that the owners give to one object. */
  partsOf(name: StatusName): readonly ObjectStatus[] {
    return [...(this.#parts.get(name)?.values() ?? NONE)];
  }

  /** The objects that have one. */
  names(): IterableIterator<StatusName> {
    return this.#parts.keys();
  }

  /** One of the owners that give it a status; undefined if none does. */
  ownerOf(name: StatusName): OwnerKey | undefined {
    return this.#parts.get(name)?.keys().next().value;
  }
}
