// The problems of load balancers by the object that they concern: that of a Gateway may be a route's, and one Service may have
// problems in the pools of several profiles.

import type { OwnerKey, Problem } from '../../model/load-balancer.ts';

const NONE: readonly never[] = [];

export class ObjectProblems {
  readonly #ofOwner = new Map<OwnerKey, readonly Problem[]>();
  /** `HTTPRoute default/api` → owner → its problems. */
  readonly #byObject = new Map<string, Map<OwnerKey, readonly Problem[]>>();

  /** Replaces the problems of an owner, and gives the objects that have or had one of them. */
  update(owner: OwnerKey, problems: readonly Problem[]): ReadonlySet<string> {
    const grouped = Map.groupBy(problems, ({ object }) => object);
    const objects = new Set(grouped.keys());
    for (const { object } of this.#ofOwner.get(owner) ?? NONE) objects.add(object);
    for (const object of objects) {
      const owners = this.#byObject.get(object) ?? new Map<OwnerKey, readonly Problem[]>();
      const now = grouped.get(object);
      if (now === undefined) owners.delete(owner);
      else owners.set(owner, now);
      if (owners.size === 0) this.#byObject.delete(object);
      else this.#byObject.set(object, owners);
    }
    if (problems.length === 0) this.#ofOwner.delete(owner);
    else this.#ofOwner.set(owner, problems);
    return objects;
  }

  of(object: string): readonly Problem[] {
    return [...(this.#byObject.get(object)?.values() ?? NONE)].flat();
  }

  objects(): Iterable<string> {
    return this.#byObject.keys();
  }
}
