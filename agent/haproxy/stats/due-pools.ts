// Which pools' members a reading asks HAProxy for. Whatever HAProxy counts for a server it counts for its backend as
// well (https://github.com/haproxy/haproxy/blob/v2.6.0/src/stream.c#L782), so where the backend's row is as it was when
// the servers were read after it, so are theirs. Not so what checks find, and what we have told HAProxy since: those
// pools are always read, and all of them every now and then, for what others may have told it.

import type { Listener } from '../../model.ts';
import { hasSpare, spareOf } from '../config/listener-config.ts';

export interface DuePoolsOptions {
  /** Goes up with each command for a listener's servers that HAProxy has acknowledged. */
  readonly changesOf: (listener: string) => number;
  readonly now?: () => number;
}

interface Known {
  readonly listener: Listener | undefined;
  readonly changes: number;
}

/** Milliseconds between two readings of all members. */
const ALL_EVERY = 60_000;
/** Characters of a line with commands: far less than a line that HAProxy cannot take. */
const LONGEST_LINE = 8 * 1024;
const EVERYTHING = 'show stat -1 4 -1';
/** Nothing else becomes a part of a command. */
const NAME = /^[a-z0-9.-]+:[a-z0-9.-]+:[a-z]+:\d+:v[46]$/;

export class DuePools {
  readonly #options: Required<DuePoolsOptions>;
  /** As of the last row of each pool. */
  readonly #known = new Map<string, Known>();
  /** Until their members have been read. */
  readonly #due = new Set<string>();
  /** Of this reading. */
  #asked = new Map<string, Listener | undefined>();
  #unread = new Set<string>();
  #isAll = true;
  /** Of the last reading of all members. */
  #worker = '';
  #readAllAt = 0;

  constructor(options: DuePoolsOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** A reading of this worker begins. */
  begin(worker: string): void {
    this.#isAll = worker !== this.#worker || this.#options.now() - this.#readAllAt >= ALL_EVERY;
    if (this.#isAll) this.#known.clear();
    this.#asked = new Map();
    this.#unread = new Set();
  }

  /** Its row of a pool. `differs`: from the reading before. */
  pool(name: string, listener: Listener | undefined, differs: boolean): void {
    const known = this.#known.get(name);
    const changes = this.#options.changesOf(name);
    this.#known.set(name, { listener, changes });
    const hasMonitor = listener === undefined || listener.pool.monitor !== undefined;
    if (differs || hasMonitor || known?.listener !== listener || known.changes !== changes)
      this.#due.add(name);
    if (this.#due.has(name)) this.#asked.set(name, listener);
    else this.#unread.add(name);
  }

  /** What is to be asked once every pool of the reading has been told of; '' for nothing. */
  commands(): string {
    const names = [...this.#asked].flatMap(([name, listener]) =>
      listener !== undefined && hasSpare(listener.pool) ? [name, spareOf(name)] : [name],
    );
    const line = names.map((name) => `show stat ${name} 4 -1`).join(';');
    const isLong = line.length > LONGEST_LINE || [...this.#asked.keys()].some((name) => !NAME.test(name));
    if (!this.#isAll && !isLong) return line;
    this.#isAll = true;
    this.#unread = new Set();
    return EVERYTHING;
  }

  /** Pools whose members were not asked for. */
  get unread(): ReadonlySet<string> {
    return this.#unread;
  }

  /** The reading has come to its end. */
  done(worker: string): void {
    this.#due.clear();
    if (!this.#isAll) return;
    this.#worker = worker;
    this.#readAllAt = this.#options.now();
  }

  /** Members are not read now: where they are again, all of them are. */
  forget(): void {
    this.#due.clear();
    this.#worker = '';
  }
}
