// Tables of rows by their names, and how to replace a few of thousands without a copy of all. Pure.

import type { Row } from './maps.ts';

/** By the table's name, `SECTION.HOSTNAME` or `HOSTNAME`; all rows in the order in which they must be added. */
export interface Tables extends Iterable<readonly [name: string, rows: readonly Row[]]> {
  readonly size: number;
  has(name: string): boolean;
  get(name: string): readonly Row[] | undefined;
  keys(): Iterable<string>;
  values(): Iterable<readonly Row[]>;
}

type ByName = ReadonlyMap<string, readonly Row[]>;

/** Replaced tables before all are copied once. */
const MOST_PATCHES = 64;

/** `tables` with other rows in some of them; `patches` has no other names. */
export function patchedTables(tables: Tables, patches: ByName): Tables {
  const [base, before] = tables instanceof PatchedTables ? [tables.base, tables.patches] : [tables, []];
  const all = new Map([...before, ...patches]);
  return all.size > MOST_PATCHES ? new Map(new PatchedTables(base, all)) : new PatchedTables(base, all);
}

class PatchedTables implements Tables {
  readonly base: Tables;
  readonly patches: ByName;

  constructor(base: Tables, patches: ByName) {
    this.base = base;
    this.patches = patches;
  }

  get size(): number {
    return this.base.size;
  }

  has(name: string): boolean {
    return this.base.has(name);
  }

  get(name: string): readonly Row[] | undefined {
    return this.patches.get(name) ?? this.base.get(name);
  }

  keys(): Iterable<string> {
    return this.base.keys();
  }

  *values(): Generator<readonly Row[], void, void> {
    for (const [, rows] of this) yield rows;
  }

  *[Symbol.iterator](): Generator<readonly [string, readonly Row[]], void, void> {
    for (const [name, rows] of this.base) yield [name, this.patches.get(name) ?? rows];
  }
}
