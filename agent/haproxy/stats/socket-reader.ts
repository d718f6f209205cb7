// Asks the worker that takes connections what each of its listening sockets has counted, a few groups of them at a time
// with a moment between: however many there are, no connection of HAProxy's waits for longer than for one portion.

import { setTimeout as delay } from 'node:timers/promises';
import { SOCKET_GROUPS } from '../config/socket-groups.ts';
import { type SocketRow, SocketRows } from './socket-rows.ts';

/** As `show stat` has them. */
const SOCKETS = 8;
/** Rows asked for at a time, as far as groups allow: 0.3 ms of HAProxy's work. */
const PORTION = 64;
/** Milliseconds between two portions. */
const PAUSE = 1;

export interface SocketReading {
  readonly rows: readonly SocketRow[];
  /** Those of the rows that are not as they were in the reading before. */
  readonly differ: ReadonlySet<SocketRow>;
}

export class SocketReader {
  #rows = new SocketRows();
  /** Whose rows these are: another one's may be the same by chance. '' where they are not those of one whole reading. */
  #worker = '';

  /** `ask()`: of this worker. Errors: those of ask(), RUNTIME_REPLY. */
  async read(
    worker: string,
    ask: (lines: readonly string[]) => Promise<readonly string[]>,
  ): Promise<SocketReading> {
    if (worker !== this.#worker) this.#rows = new SocketRows();
    this.#worker = '';
    const atOnce = groupsAtOnce(this.#rows.size);
    const rows: SocketRow[] = [];
    const differ = new Set<SocketRow>();
    for (let group = 1; group <= SOCKET_GROUPS; group += atOnce) {
      if (group > 1) await delay(PAUSE);
      const groups = Array.from(
        { length: Math.min(atOnce, SOCKET_GROUPS + 1 - group) },
        (_, at) => group + at,
      );
      const texts = await ask(groups.map((each) => `show stat -1 ${SOCKETS} ${each}`));
      for (const [at, each] of groups.entries()) {
        for (const row of this.#rows.take(each, texts[at] ?? '')) differ.add(row);
        rows.push(...this.#rows.rows(each));
      }
    }
    this.#worker = worker;
    return { rows, differ };
  }
}

/** One, where it is not known yet how many rows they have. */
function groupsAtOnce(rows: number): number {
  if (rows === 0) return 1;
  return Math.min(SOCKET_GROUPS, Math.max(1, Math.floor((PORTION * SOCKET_GROUPS) / rows)));
}
