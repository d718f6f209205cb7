// Asks the worker that takes connections what each of its listening sockets has counted, a few groups of them at a time
// with a moment between: however many there are, no connection of HAProxy's waits for longer than for one portion.

import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError } from '../../base/errors.ts';
import { SOCKET_GROUPS } from '../config/socket-groups.ts';
import { askOnce } from '../socket/ask-once.ts';
import { type ProcessInfo, readProcessInfo } from './process-info.ts';
import { type SocketRow, SocketRows } from './socket-rows.ts';

/** As `show stat` has them. */
const SOCKETS = 8;
/** Rows asked for at a time, as far as groups allow: 0.3 ms of HAProxy's work. */
const PORTION = 64;
/** Milliseconds between two portions. */
const PAUSE = 1;
/** Seconds since its start, which with 100,000 members comes some before its first answer, and the end of the one before. */
const YOUNG = 60;

export interface SocketReading {
  readonly info: ProcessInfo;
  readonly rows: readonly SocketRow[];
  /** Those of the rows that are not as they were in the reading before. */
  readonly differ: ReadonlySet<SocketRow>;
}

export class SocketReader {
  #rows = new SocketRows();
  /** Whose rows these are: another one's may be the same by chance. '' where they are not those of one whole reading. */
  #worker = '';

  /**
   * `timeoutMs` is for all of it. Errors: RUNTIME_CONNECT, RUNTIME_CLOSED, also where another worker answers in between,
   * RUNTIME_TIMEOUT, RUNTIME_REPLY.
   */
  async read(adminSocket: string, timeoutMs: number): Promise<SocketReading> {
    const until = performance.now() + timeoutMs;
    const worker = this.#worker;
    this.#worker = '';
    const atOnce = groupsAtOnce(this.#rows.size);
    const rows: SocketRow[] = [];
    const differ = new Set<SocketRow>();
    let info: ProcessInfo | undefined;
    for (let group = 1; group <= SOCKET_GROUPS; group += atOnce) {
      if (info !== undefined) await delay(PAUSE);
      const groups = Array.from(
        { length: Math.min(atOnce, SOCKET_GROUPS + 1 - group) },
        (_, at) => group + at,
      );
      const commands = groups.map((each) => `show stat -1 ${SOCKETS} ${each}`);
      const isLast = group + atOnce > SOCKET_GROUPS;
      const asksWho = info === undefined || isLast || isYoung(info);
      if (asksWho) commands.unshift('show info');
      const left = Math.max(1, until - performance.now());
      const texts = (await askOnce(adminSocket, commands.join(';'), { timeoutMs: left })).split('\n\n');
      if (asksWho) {
        const own = readProcessInfo(texts.shift() ?? '');
        if (info === undefined) {
          if (own.id !== worker) this.#rows = new SocketRows();
        } else if (own.id !== info.id || own.stopping !== info.stopping) throw anotherWorker();
        info = own;
      }
      for (const [at, each] of groups.entries()) {
        for (const row of this.#rows.take(each, texts[at] ?? '')) differ.add(row);
        rows.push(...this.#rows.rows(each));
      }
    }
    // There is at least one group.
    const own = info as ProcessInfo;
    this.#worker = own.id;
    return { info: own, rows, differ };
  }
}

/** The one before may answer as well, in between. An older one is replaced meanwhile if it stops by the end of the reading. */
function isYoung(info: ProcessInfo): boolean {
  return !(info.gauge('Uptime_sec') >= YOUNG);
}

/** While one takes the place of another both answer at the admin socket. */
export function anotherWorker(): HeadgateError {
  return new HeadgateError('RUNTIME_CLOSED', 'Another worker has taken over', { retry: 'now' });
}

/** One, where it is not known yet how many rows they have. */
function groupsAtOnce(rows: number): number {
  if (rows === 0) return 1;
  return Math.min(SOCKET_GROUPS, Math.max(1, Math.floor((PORTION * SOCKET_GROUPS) / rows)));
}
