// The series of one kind in blocks of rows that stay together: a block has the same array from one reading to the next
// for as long as it has the same rows with the same labels, so that what was written of them can be used again. Its
// rows have the place in common where each column's last change is marked.

import { type Changes, newChanges } from './columns.ts';
import { isOf, type Series } from './series.ts';

export interface Block {
  readonly rows: readonly Series[];
  /** As they were when the block was settled. */
  readonly changes: Readonly<Changes>;
}

interface Own {
  readonly rows: readonly Series[];
  /** That of each row, marked in place. */
  readonly changes: Changes;
}

/** Rows of one block: so few that one that changes costs little, so many that they pack well. */
const SIZE = 256;

export class SeriesBlocks {
  #blocks: readonly Own[] = [];
  #settled: readonly Block[] = [];
  #added: Series[] = [];
  readonly #relabelled = new Set<Series>();

  /** As they were when they were last settled. */
  get all(): readonly Block[] {
    return this.#settled;
  }

  add(series: Series): void {
    this.#added.push(series);
  }

  relabel(series: Series): void {
    this.#relabelled.add(series);
  }

  /** Takes in what has changed, with those that were in the reading of this number. */
  settle(reading: number): void {
    const isSeen = (row: Series): boolean => isOf(reading, row);
    const isSame =
      this.#relabelled.size === 0
        ? isSeen
        : (row: Series): boolean => isSeen(row) && !this.#relabelled.has(row);
    const blocks = this.#blocks.map(
      (block): Own => (block.rows.every(isSame) ? block : { ...block, rows: block.rows.filter(isSeen) }),
    );
    const added = this.#added.filter(isSeen);
    this.#added = [];
    this.#relabelled.clear();
    // Those that have lost rows are filled up before there is a new one.
    for (let at = 0, taken = 0; taken < added.length; at++) {
      const { rows, changes } = blocks[at] ?? { rows: [], changes: newChanges() };
      if (rows.length >= SIZE) continue;
      const more = added.slice(taken, taken + SIZE - rows.length);
      for (const series of more) series.changes = changes;
      blocks[at] = { rows: [...rows, ...more], changes };
      taken += more.length;
    }
    this.#blocks = blocks.filter(({ rows }) => rows.length > 0);
    this.#settled = this.#blocks.map(({ rows, changes }) => ({ rows, changes: [...changes] }));
  }
}
