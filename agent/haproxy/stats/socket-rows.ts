// What HAProxy has counted for each listening socket, asked for group by group between the readings of everything
// else: from it alone is known which listeners have had a connection since. A text that is the same as before costs no
// more than that comparison, and of one that is not only the lines that differ are looked into. Does no I/O.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import type { Column } from './columns.ts';

/** What the sockets of one group say of one listener. */
export interface SocketRow {
  readonly listener: string;
  /** The number by which HAProxy knows it; before 2.8 a backend has the same name. */
  readonly id: number;
  readonly isOpen: boolean;
  /** In the order of `countedColumns`; NaN where it is not told. */
  readonly counts: readonly number[];
  readonly line: string;
}

interface Group {
  readonly text: string;
  readonly rows: readonly SocketRow[];
}

/** What HAProxy counts for a socket whenever it counts for its listener, right after it. */
export const countedColumns = [
  'scur',
  'stot',
  'bin',
  'bout',
  'conn_tot',
  'dcon',
  'dses',
] as const satisfies readonly Column[];

const COLUMNS = ['pxname', 'iid', ...countedColumns] as const;
const [OPEN, SESSIONS, CONNECTIONS] = (['scur', 'stot', 'conn_tot'] as const).map((column) =>
  countedColumns.indexOf(column),
) as [number, number, number];

export class SocketRows {
  readonly #groups = new Map<number, Group>();

  /** The answer to `show stat -1 8 GROUP`; which of its rows differ from the one before. Errors: RUNTIME_REPLY. */
  take(group: number, text: string): ReadonlySet<SocketRow> {
    const before = this.#groups.get(group);
    const differ = new Set<SocketRow>();
    if (text === before?.text) return differ;
    const [header = '', ...lines] = text.split('\n');
    const at = columnsOf(header);
    const rows = lines.map((line, place) => {
      const known = before?.rows[place];
      // The new text in its place: the old one would be kept for the sake of one line.
      if (known?.line === line) return { ...known, line };
      const row = rowOf(line, at);
      differ.add(row);
      return row;
    });
    this.#groups.set(group, { text, rows });
    return differ;
  }

  /** Of all groups. */
  get size(): number {
    let size = 0;
    for (const { rows } of this.#groups.values()) size += rows.length;
    return size;
  }

  rows(group: number): readonly SocketRow[] {
    return this.#groups.get(group)?.rows ?? [];
  }
}

function columnsOf(header: string): readonly number[] {
  const names = header.replace(/^# /, '').split(',');
  const at = COLUMNS.map((name) => names.indexOf(name));
  if (at.includes(-1))
    throw new HeadgateError(
      'RUNTIME_REPLY',
      `Cannot read HAProxy's statistics: ${quote(header.slice(0, 200))}`,
    );
  return at;
}

/** Neither the names of listeners nor what stands before the last column that counts is ever in quotes. */
function rowOf(line: string, at: readonly number[]): SocketRow {
  const fields = line.split(',');
  const [listener = '', id, ...numbers] = at.map((column) => fields[column]);
  const counts = numbers.map((text = '') => (text === '' ? Number.NaN : Number(text)));
  // Before 3.0 a socket's sessions are all its connections, which have no column of their own.
  if (Number.isNaN(counts[CONNECTIONS])) {
    counts[CONNECTIONS] = counts[SESSIONS] as number;
    counts[SESSIONS] = Number.NaN;
  }
  return { listener, id: Number(id), isOpen: (counts[OPEN] as number) > 0, counts, line };
}

/** What the sockets of each listener have counted together, in the order of `countedColumns`. */
export function sumsOf(rows: Iterable<SocketRow>): ReadonlyMap<string, readonly number[]> {
  const sums = new Map<string, number[]>();
  for (const { listener, counts } of rows) {
    const sum = sums.get(listener);
    if (sum === undefined) sums.set(listener, [...counts]);
    else for (const [at, count] of counts.entries()) (sum[at] as number) += count;
  }
  return sums;
}
