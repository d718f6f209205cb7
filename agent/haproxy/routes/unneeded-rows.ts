// When rows that are no longer needed may be deleted: a second after the row that led to them was changed, because a request
// of another thread may be between two look-ups.

import { type Clock, systemClock } from '../../base/clock.ts';
import { DueTimer } from '../../base/due-timer.ts';
import { type Row, rowId } from './maps.ts';

const REST_MS = 1_000;

export class UnneededRows {
  readonly #clock: Clock;
  readonly #timer: DueTimer;
  /** What was due then has been planned again. */
  #taken = Number.NEGATIVE_INFINITY;
  /** By listener and table, by row: when it may be deleted. */
  readonly #due = new Map<string, Map<string, Map<string, number>>>();

  /** `onDue` gets the listeners of which rows may be deleted now. */
  constructor(onDue: (listeners: readonly string[]) => void, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#timer = new DueTimer(
      async () => {
        const listeners = this.#takeDue();
        if (listeners.length > 0) onDue(listeners);
      },
      () => this.#next(),
      clock,
    );
  }

  /** These are all rows of the tables that are not needed and not deleted yet. */
  note(listener: string, tables: ReadonlyMap<string, readonly Row[]>): void {
    for (const [table, rows] of tables) this.#note(listener, table, rows);
  }

  readonly isDue = (listener: string, table: string, row: Row): boolean => {
    const due = this.#due.get(listener)?.get(table)?.get(rowId(row));
    return due !== undefined && due <= this.#clock.monotonic();
  };

  close(): void {
    this.#timer.close();
  }

  #note(listener: string, table: string, rows: readonly Row[]): void {
    const tables = this.#due.get(listener) ?? new Map<string, Map<string, number>>();
    const before = tables.get(table);
    const due = this.#clock.monotonic() + REST_MS;
    if (rows.length > 0) {
      tables.set(table, new Map(rows.map((row) => [rowId(row), before?.get(rowId(row)) ?? due])));
      this.#timer.wakeAt(due);
    } else tables.delete(table);
    if (tables.size > 0) this.#due.set(listener, tables);
    else this.#due.delete(listener);
  }

  #takeDue(): readonly string[] {
    this.#taken = this.#clock.monotonic();
    const isDue = (due: number): boolean => due <= this.#taken;
    return [...this.#due].filter(([, tables]) => dueTimes(tables).some(isDue)).map(([listener]) => listener);
  }

  #next(): number {
    const times = [...this.#due.values()].flatMap(dueTimes).filter((due) => due > this.#taken);
    return times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  }
}

function dueTimes(tables: ReadonlyMap<string, ReadonlyMap<string, number>>): readonly number[] {
  return [...tables.values()].flatMap((rows) => [...rows.values()]);
}
