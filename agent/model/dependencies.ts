// What translation reads, and which owners have read it: when it changes, these are translated again.

import type { OwnerKey } from './load-balancer.ts';

/** `service default/web`; `endpoints default/web`: all EndpointSlices of that Service; `nodes`: any Node. */
export type Dependency = `service ${string}` | `endpoints ${string}` | 'nodes';

const NONE: readonly never[] = [];

export class Dependents {
  readonly #reads = new Map<OwnerKey, readonly Dependency[]>();
  readonly #readers = new Map<Dependency, Set<OwnerKey>>();

  /** Replaces what an owner has read; [] forgets the owner. */
  set(owner: OwnerKey, reads: readonly Dependency[]): void {
    const before = this.#reads.get(owner) ?? NONE;
    if (before.length === reads.length && before.every((each, at) => each === reads[at])) return;
    for (const dependency of before) this.#remove(dependency, owner);
    for (const dependency of reads) this.#add(dependency, owner);
    if (reads.length === 0) this.#reads.delete(owner);
    else this.#reads.set(owner, reads);
  }

  /** The owners that have read any of these. */
  of(changed: Iterable<Dependency>): ReadonlySet<OwnerKey> {
    const owners = new Set<OwnerKey>();
    for (const dependency of changed)
      for (const owner of this.#readers.get(dependency) ?? NONE) owners.add(owner);
    return owners;
  }

  #add(dependency: Dependency, owner: OwnerKey): void {
    const readers = this.#readers.get(dependency);
    if (readers === undefined) this.#readers.set(dependency, new Set([owner]));
    else readers.add(owner);
  }

  #remove(dependency: Dependency, owner: OwnerKey): void {
    const readers = this.#readers.get(dependency);
    readers?.delete(owner);
    if (readers?.size === 0) this.#readers.delete(dependency);
  }
}
