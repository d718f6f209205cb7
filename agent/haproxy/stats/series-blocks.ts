// The series of one kind in blocks of rows that stay together: a block has the same array from one reading to the next
// for as long as it has the same rows with the same labels, so that what was written of them can be used again.

import type { Series } from './series.ts';

export interface Block {
  readonly rows: readonly Series[];
  /** The number of the reading that last changed one of them. */
  readonly asOf: number;
}

/** Rows of one block: so few that one that changes costs little, so many that they pack well. */
const SIZE = 256;

export class SeriesBlocks {
  #blocks: readonly Block[] = [];
  #added: Series[] = [];
  readonly #relabelled = new Set<Series>();

  /** As they were when they were last settled. */
  get all(): readonly Block[] {
    return this.#blocks;
  }

  add(series: Series): void {
    this.#added.push(series);
  }

  relabel(series: Series): void {
    this.#relabelled.add(series);
  }

  /** Takes in what has changed, with those that were in the reading of this number. */
  settle(reading: number): void {
    const isSeen = ({ seen }: Series): boolean => seen === reading;
    const isSame = (row: Series): boolean => isSeen(row) && !this.#relabelled.has(row);
    const blocks = this.#blocks.map(({ rows }) => (rows.every(isSame) ? rows : rows.filter(isSeen)));
    const added = this.#added.filter(isSeen);
    this.#added = [];
    this.#relabelled.clear();
    // Those that have lost rows are filled up before there is a new one.
    for (let at = 0, taken = 0; taken < added.length; at++) {
      const rows = blocks[at] ?? [];
      if (rows.length >= SIZE) continue;
      const more = added.slice(taken, taken + SIZE - rows.length);
      blocks[at] = [...rows, ...more];
      taken += more.length;
    }
    this.#blocks = blocks
      .filter(({ length }) => length > 0)
      .map((rows) => ({ rows, asOf: lastChange(rows) }));
  }
}

function lastChange(rows: readonly Series[]): number {
  let last = 0;
  for (const { changed } of rows) if (changed > last) last = changed;
  return last;
}
