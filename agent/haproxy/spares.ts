// The spare backends of one HAProxy worker: which pool each serves. A pool that has one keeps it for the life of the worker; the
// next worker has the pool under its own name.
// Why: docs/design/decisions/0059-spare-backends.md

import type { Listener, OwnerKey } from '../model/load-balancer.ts';
import { ownerOfListener, spareBackend } from '../model/names.ts';
import { isLikeSpare, SPARES } from './config/spare-pools.ts';
import type { MapRow } from './routes/maps.ts';

/** The table, of the pool, of the row that leads from its name to its spare backend. */
export const SPARE_TABLE = 'spare';

/** Offers the row of the same spare backend only once; undefined if there is none for the pool. */
export type SpareOffer = (pool: Listener) => MapRow | undefined;

export class Spares {
  /** The configuration that all spare backends share; undefined if the worker has none. */
  readonly profile: Listener | undefined;
  /** By the name of the pool. */
  readonly #rowOfPool = new Map<string, MapRow>();
  readonly #free = new Set(Array.from({ length: SPARES }, (_, at) => spareBackend(at + 1)));

  constructor(profile: Listener | undefined) {
    this.profile = profile;
  }

  /** For the plans of one round; they take nothing until they are applied. */
  offer(): SpareOffer {
    const free = [...this.#free];
    return (pool) => {
      if (this.profile === undefined || !isLikeSpare(this.profile, pool)) return undefined;
      const { name } = pool;
      const backend = this.#rowOfPool.has(name) ? undefined : free.shift();
      return backend === undefined ? this.#rowOfPool.get(name) : { map: 'spares', key: name, value: backend };
    };
  }

  /** Gives the pool this backend, before HAProxy is told; false if another pool has it meanwhile. */
  give(row: MapRow): boolean {
    const { key: pool, value: backend } = row;
    if (this.#rowOfPool.get(pool)?.value === backend) return true;
    if (this.#rowOfPool.has(pool) || !this.#free.delete(backend)) return false;
    this.#rowOfPool.set(pool, row);
    return true;
  }

  /** The row of a pool that has one. */
  given(pool: string): MapRow | undefined {
    return this.#rowOfPool.get(pool);
  }

  /** HAProxy has refused the row. */
  release(pool: string): void {
    const backend = this.#rowOfPool.get(pool)?.value;
    this.#rowOfPool.delete(pool);
    if (backend !== undefined) this.#free.add(backend);
  }

  /** The pools of an owner that have one. */
  poolsOf(key: OwnerKey): readonly string[] {
    return this.#rowOfPool.size === 0
      ? []
      : [...this.#rowOfPool.keys()].filter((name) => ownerOfListener(name) === key);
  }
}
