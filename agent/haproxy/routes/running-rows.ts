// The rows of maps that one HAProxy worker has, as far as its replies prove it, by listener and table. Tables that nothing has
// changed are those of the files that the worker booted from, not copies.

import { type MapName, type MapRow, rowId } from './maps.ts';
import type { RowTables } from './patched-tables.ts';
import { changeOf } from './tables.ts';

/** The table, of any listener, of rows that no listener should have. */
export const UNKNOWN_TABLE = '';

/** The value of a key that the map has more than once, because another process has added it. */
export const SEVERAL = '';

/** By rowId(). */
export type RowsById = ReadonlyMap<string, MapRow>;

type Rows = readonly MapRow[] | OwnRows;

class OwnRows extends Map<string, MapRow> {
  /** Found to be the same. */
  same: readonly MapRow[] | undefined;
}

export class RunningRows {
  /** Counts the changes, so that an audit can see that a map has changed while it was read. */
  changes = 0;
  readonly #tables = new Map<string, Map<string, Rows>>();
  /** By listener: the tables that were compared last, and the names of those that differed then or have changed since. */
  readonly #same = new Map<string, { readonly tables: RowTables; readonly changed: Set<string> }>();

  /** The worker booted with these. */
  boot(listener: string, tables: RowTables): void {
    if (tables.size === 0) return;
    this.#tables.set(listener, new Map(tables));
    this.#same.set(listener, { tables, changed: new Set() });
  }

  listeners(): Iterable<string> {
    return this.#tables.keys();
  }

  /** The tables that differ from the desired ones, also those that are not desired. */
  differing(listener: string, desired: RowTables): readonly string[] {
    const tables = this.#tables.get(listener) ?? NO_TABLES;
    const names: string[] = [];
    for (const name of this.#suspects(listener, desired)) {
      const [rows, wanted] = [tables.get(name), desired.get(name) ?? NO_ROWS];
      if (rows !== wanted && !isSame(rows, wanted)) names.push(name);
    }
    // The next comparison looks at these, and at what has changed in the meantime.
    this.#same.set(listener, { tables: desired, changed: new Set(names) });
    return names;
  }

  rowsOf(listener: string, table: string): RowsById {
    const rows = this.#tables.get(listener)?.get(table);
    return rows instanceof OwnRows ? rows : byId(rows ?? []);
  }

  put(listener: string, table: string, row: MapRow): void {
    this.#own(listener, table).set(rowId(row), row);
  }

  remove(listener: string, table: string, row: MapRow): void {
    const own = this.#own(listener, table);
    own.delete(rowId(row));
    if (own.size === 0) this.#tables.get(listener)?.delete(table);
  }

  /** All rows of a map, with the position that each belongs to. The caller may change each one. */
  *all(
    map: MapName,
  ): Generator<{ readonly listener: string; readonly table: string; readonly row: MapRow }, void, void> {
    for (const [listener, tables] of this.#tables)
      for (const [table, rows] of [...tables])
        for (const row of [...rows.values()]) if (row.map === map) yield { listener, table, row };
  }

  /** A few of the tables if it is known from which they were made, otherwise all. */
  #suspects(listener: string, desired: RowTables): Iterable<string> {
    const same = this.#same.get(listener);
    if (same?.tables === desired) return same.changed;
    const change = changeOf(desired);
    if (same !== undefined && change?.from === same.tables)
      return new Set([...same.changed, ...change.names]);
    return new Set([...desired.keys(), ...(this.#tables.get(listener)?.keys() ?? [])]);
  }

  #own(listener: string, table: string): OwnRows {
    this.changes++;
    this.#same.get(listener)?.changed.add(table);
    const tables = this.#tables.get(listener) ?? new Map<string, Rows>();
    this.#tables.set(listener, tables);
    let rows = tables.get(table);
    if (!(rows instanceof OwnRows)) {
      rows = byId(rows ?? []);
      tables.set(table, rows);
    }
    rows.same = undefined;
    return rows;
  }
}

const NO_TABLES: ReadonlyMap<string, Rows> = new Map();
const NO_ROWS: readonly MapRow[] = [];

function isSame(rows: Rows | undefined, wanted: readonly MapRow[]): boolean {
  if (rows === undefined) return wanted.length === 0;
  if (!(rows instanceof OwnRows)) return rows.length === 0 && wanted.length === 0;
  if (rows.size !== wanted.length) return false;
  if (rows.same === wanted) return true;
  const are = wanted.every((row) => rows.get(rowId(row))?.value === row.value);
  if (are) rows.same = wanted;
  return are;
}

function byId(rows: readonly MapRow[]): OwnRows {
  const own = new OwnRows();
  for (const row of rows) own.set(rowId(row), row);
  return own;
}
