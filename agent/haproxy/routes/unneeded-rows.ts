// Which rows are no longer needed and not deleted yet: each may be deleted a second after the row that led to it was changed,
// because a request of another thread may be between two look-ups. If a rule asks an authorization server, a request may be there
// for as long as the server takes.

import type { Clock } from '../../base/clock.ts';
import { Lingering } from './lingering.ts';
import { type MapRow, rowId } from './maps.ts';

/** Three attempts of five seconds, and some more. */
const ASKED_REST_MS = 20_000;

export class UnneededRows {
  readonly #lingering: Lingering;
  /** By listener and table. */
  readonly #rows = new Map<string, ReadonlySet<string>>();

  /** `onDue` gets the listeners of which rows may be deleted now. */
  constructor(onDue: (listeners: readonly string[]) => void, clock?: Clock) {
    this.#lingering = new Lingering({
      onDue: (keys) => onDue([...new Set(keys.map((key) => key.split('\0', 1)[0] ?? ''))]),
      ...(clock && { clock }),
    });
  }

  /** These are all rows of the tables that are not needed and not deleted yet. */
  note(listener: string, tables: ReadonlyMap<string, readonly MapRow[]>): void {
    for (const [table, rows] of tables) {
      const position = `${listener}\0${table}`;
      const now = new Set(rows.map((row) => keyOf(listener, table, row)));
      for (const key of this.#rows.get(position) ?? []) if (!now.has(key)) this.#lingering.forget(key);
      const rest = rows.some(({ map }) => map === 'external-auth') ? ASKED_REST_MS : undefined;
      for (const key of now) this.#lingering.note(key, rest);
      if (now.size > 0) this.#rows.set(position, now);
      else this.#rows.delete(position);
    }
  }

  readonly isDue = (listener: string, table: string, row: MapRow): boolean =>
    this.#lingering.isDue(keyOf(listener, table, row));

  close(): void {
    this.#lingering.close();
  }
}

function keyOf(listener: string, table: string, row: MapRow): string {
  return `${listener}\0${table}\0${rowId(row)}`;
}
