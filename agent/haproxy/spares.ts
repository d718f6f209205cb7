// The spare backends of one HAProxy worker: which pool each serves. A pool that has one keeps it for the life of the worker; the
// next worker has the pool under its own name.

import type { Listener, OwnerKey } from '../model/load-balancer.ts';
import { ownerOfListener, spareBackend } from '../model/names.ts';
import { structureOf } from './config/listener-config.ts';
import { isLikeSpare, SPARES } from './config/spare-pools.ts';
import type { Row } from './routes/maps.ts';

/** The table, of the pool, of the row that leads from its name to its spare backend. */
export const SPARE_TABLE = 'spare';

export interface Spare {
  /** See structureOf(): of the pool. */
  readonly structure: string;
  readonly row: Row;
}

export class Spares {
  /** What they are like; undefined if the worker has none. */
  readonly profile: Listener | undefined;
  /** By the name of the pool. */
  readonly #given = new Map<string, Spare>();
  readonly #free = new Set(Array.from({ length: SPARES }, (_, at) => spareBackend(at + 1)));

  constructor(profile: Listener | undefined) {
    this.profile = profile;
  }

  /** The spare backend of this pool, which may get it now; undefined if there is none for it. */
  of(listener: Listener): Spare | undefined {
    if (this.profile === undefined || !isLikeSpare(this.profile, listener)) return undefined;
    const { name } = listener;
    const known = this.#given.get(name);
    const [backend] = this.#free;
    if (known !== undefined || backend === undefined) return known;
    this.#free.delete(backend);
    const row: Row = { map: 'spares', key: name, value: backend };
    const spare = { structure: structureOf(listener), row };
    this.#given.set(name, spare);
    return spare;
  }

  /** Of a pool that has one. */
  given(pool: string): Spare | undefined {
    return this.#given.get(pool);
  }

  /** The pool does not need its spare backend, which the worker has not given it yet. */
  release(pool: string): void {
    const backend = this.#given.get(pool)?.row.value;
    this.#given.delete(pool);
    if (backend !== undefined) this.#free.add(backend);
  }

  /** The pools of an owner that have one. */
  poolsOf(key: OwnerKey): readonly string[] {
    return this.#given.size === 0
      ? []
      : [...this.#given.keys()].filter((name) => ownerOfListener(name) === key);
  }
}
