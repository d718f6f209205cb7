// Plans how the rows of a listener's routes get from their running to their desired state. New rows come first, each after
// those that it leads to; then the rows that requests look up first are changed or removed. Rows that are no longer needed
// stay a while, because a request may be between two look-ups. Pure.

import type { Listener } from '../model/load-balancer.ts';
import { heldRows } from './routes/held-rows.ts';
import { isEntry, type MapRow, rowId } from './routes/maps.ts';
import { leadingTo, poolsOf } from './routes/needs.ts';
import type { RowTables } from './routes/patched-tables.ts';
import { mapFile } from './routes/route-files.ts';
import { type RowsById, SEVERAL, UNKNOWN_TABLE } from './routes/running-rows.ts';
import type { Running } from './running.ts';
import type { Command, RowCommand } from './socket/commands.ts';

/** What a plan must know of the routes besides the model. */
export interface RoutesForPlan {
  /** The folder of the maps. */
  readonly folder: string;
  /** The rows that the listener should have. */
  readonly tablesOf: (listener: Listener) => RowTables;
  /** The row has not been needed for so long that no request can lead to it. */
  readonly isDue: (listener: string, table: string, row: MapRow) => boolean;
}

export interface RowsPlan {
  /** Rows that are not needed and not deleted yet, by table; also tables that have none any more. */
  readonly unneeded: ReadonlyMap<string, readonly MapRow[]>;
  /** Some rows lead to pools that the worker does not have. */
  readonly waitsForPools: boolean;
}

export function planRows(
  listener: Listener,
  running: Running,
  { folder, tablesOf, isDue }: RoutesForPlan,
  gain: Command[],
  loss: Command[],
  guards: Command[],
): RowsPlan {
  const { name } = listener;
  const desired = tablesOf(listener);
  const unneeded = new Map<string, readonly MapRow[]>();
  let waitsForPools = false;
  const command = (kind: RowCommand['kind'], table: string, row: MapRow): RowCommand => ({
    kind,
    map: mapFile(folder, row.map),
    key: row.key,
    value: row.value,
    position: { listener: name, table, row },
  });
  const planTable = (table: string, wanted: readonly MapRow[]): void => {
    const current = running.rows.rowsOf(name, table);
    const missing = poolsOf(wanted).filter((pool) => !running.has(pool));
    const waiting = leadingTo(wanted, new Set(missing));
    waitsForPools ||= waiting.size > 0;
    const ready = wanted.filter((row) => !waiting.has(rowId(row)));
    for (const row of [...ready, ...heldRows(wanted, waiting, current)]) {
      const before = current.get(rowId(row));
      if (before?.value === row.value) continue;
      const isSeveral = before?.value === SEVERAL;
      // Without a moment in which the section is open, and after the lines of the crt-list: a connection from before them
      // is not taken for one that has shown what they ask for.
      if (row.map === 'guarded' && before !== undefined && !isSeveral) {
        guards.push(command('SetMapEntry', table, row));
        continue;
      }
      const isChange = before !== undefined && !isSeveral && isEntry(row);
      if (before !== undefined && !isChange) gain.push(command('DeleteMapEntry', table, before));
      // HAProxy 3.4 deletes one at a time.
      if (isSeveral) gain.push(command('DeleteMapEntry', table, before));
      gain.push(command(isChange ? 'SetMapEntry' : 'AddMapEntry', table, row));
    }
    // The old rows stay while new ones wait for a pool.
    if (waiting.size > 0) return;
    const isWhole = !desired.has(table) && table !== UNKNOWN_TABLE;
    const { now, later } = leftOver(current, wanted, isWhole);
    for (const row of now) loss.push(command('DeleteMapEntry', table, row));
    unneeded.set(
      table,
      later.filter((row) => !isDue(name, table, row)),
    );
    for (const row of later) if (isDue(name, table, row)) loss.push(command('DeleteMapEntry', table, row));
  };
  for (const table of running.rows.differing(name, desired)) planTable(table, desired.get(table) ?? NO_ROWS);
  return { unneeded, waitsForPools };
}

const NO_ROWS: readonly MapRow[] = [];

/** Rows to delete: those that requests look up first, in the opposite order of their addition, and all others. */
function leftOver(
  current: RowsById,
  wanted: readonly MapRow[],
  isWhole: boolean,
): { readonly now: readonly MapRow[]; readonly later: readonly MapRow[] } {
  const ids = new Set(wanted.map(rowId));
  const rows = [...current.values()].filter((row) => !ids.has(rowId(row))).reverse();
  // A request may still look up the paths of a table that goes as a whole.
  const isFirst = isWhole ? ({ map }: MapRow) => map === 'hosts' : isEntry;
  return { now: rows.filter(isFirst), later: rows.filter((row) => !isFirst(row)) };
}
