// Divides among the owners of a namespace what the namespace may have, such as servers in HAProxy: if their needs exceed the
// bound together, owners with small needs get all that they need, and the others get equal shares of the rest. The shares
// depend on the needs only, so that both hosts of a pair have the same.

import type { OwnerKey } from './load-balancer.ts';

interface Namespace {
  /** Key: an owner that needs anything. */
  readonly needs: Map<OwnerKey, number>;
  /** The sum of the needs. */
  total: number;
  /** What one owner may have at most; Infinity while the total is within the bound. */
  share: number;
}

export class Shares {
  /** What a namespace may have; 0 for no bound. */
  readonly bound: () => number;
  readonly #namespaces = new Map<string, Namespace>();
  /** The namespaces to look at in settle(). */
  readonly #changed = new Set<string>();

  constructor(bound: () => number) {
    this.bound = bound;
  }

  /** Sets what an owner needs; 0 if nothing. */
  update(namespace: string, owner: OwnerKey, need: number): void {
    let entry = this.#namespaces.get(namespace);
    if (entry === undefined) {
      if (need === 0) return;
      entry = { needs: new Map(), total: 0, share: Number.POSITIVE_INFINITY };
      this.#namespaces.set(namespace, entry);
    }
    entry.total += need - (entry.needs.get(owner) ?? 0);
    if (need > 0) entry.needs.set(owner, need);
    else entry.needs.delete(owner);
    this.#changed.add(namespace);
  }

  /**
   * The owners that may have more or less than at the last call. The cost of a change is constant while its namespace is
   * within the bound, else in proportion to the owners of the namespace.
   */
  settle(): ReadonlySet<OwnerKey> {
    const affected = new Set<OwnerKey>();
    for (const namespace of this.#changed) {
      const entry = this.#namespaces.get(namespace);
      if (entry === undefined) continue;
      const before = entry.share;
      entry.share = shareOf(entry, this.bound());
      const least = Math.min(before, entry.share);
      if (before !== entry.share)
        for (const [owner, need] of entry.needs) if (need > least) affected.add(owner);
      if (entry.needs.size === 0) this.#namespaces.delete(namespace);
    }
    this.#changed.clear();
    return affected;
  }

  /** What each owner of the namespace may have at most, as of the last settle(); Infinity for no limit. */
  of(namespace: string): number {
    return this.#namespaces.get(namespace)?.share ?? Number.POSITIVE_INFINITY;
  }
}

/** At least 1, also if there are more owners than the bound allows. */
function shareOf({ needs, total }: Namespace, bound: number): number {
  if (bound === 0 || total <= bound) return Number.POSITIVE_INFINITY;
  let rest = bound;
  let owners = needs.size;
  for (const need of [...needs.values()].sort((a, b) => a - b)) {
    if (need * owners > rest) break;
    rest -= need;
    owners--;
  }
  return Math.max(1, roundDown(Math.floor(rest / owners)));
}

/** To four significant bits, so that a small change of one owner seldom changes the shares of the others. */
function roundDown(share: number): number {
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(share)) - 3);
  return Math.floor(share / unit) * unit;
}
