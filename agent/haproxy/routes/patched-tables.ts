// Row tables by their names, and how to replace a few of thousands without a copy of all. Pure.

import type { MapRow } from './maps.ts';

/** By the table's name, `SECTION.HOSTNAME` or `HOSTNAME`; all rows in the order in which they must be added. */
export interface RowTables extends Iterable<readonly [name: string, rows: readonly MapRow[]]> {
  readonly size: number;
  has(name: string): boolean;
  get(name: string): readonly MapRow[] | undefined;
  keys(): Iterable<string>;
  values(): Iterable<readonly MapRow[]>;
}

type ByName = ReadonlyMap<string, readonly MapRow[]>;

/** Replaced tables before all are copied once. */
const MOST_PATCHES = 64;

/** `tables` with other rows in some of them; `patches` has no other names. */
export function patchedTables(tables: RowTables, patches: ByName): RowTables {
  const [base, before] = tables instanceof PatchedTables ? [tables.base, tables.patches] : [tables, []];
  const all = new Map([...before, ...patches]);
  return all.size > MOST_PATCHES ? new Map(new PatchedTables(base, all)) : new PatchedTables(base, all);
}

class PatchedTables implements RowTables {
  readonly base: RowTables;
  readonly patches: ByName;

  constructor(base: RowTables, patches: ByName) {
    this.base = base;
    this.patches = patches;
  }

  get size(): number {
    return this.base.size;
  }

  has(name: string): boolean {
    return this.base.has(name);
  }

  get(name: string): readonly MapRow[] | undefined {
    return this.patches.get(name) ?? this.base.get(name);
  }

  keys(): Iterable<string> {
    return this.base.keys();
  }

  *values(): Generator<readonly MapRow[], void, void> {
    for (const [, rows] of this) yield rows;
  }

  *[Symbol.iterator](): Generator<readonly [string, readonly MapRow[]], void, void> {
    for (const [name, rows] of this.base) yield [name, this.patches.get(name) ?? rows];
  }
}
