// Which listeners, pools and members a reading asks HAProxy for, once it has told of all listeners or of their sockets.
// A connection is counted for its socket and its listener before it is for anything else: where that row is as it was
// when the rest was read after it, and nothing is open, the rest is as it was. Not so what checks find, how long a pool
// has been down, and what we have told HAProxy since: those pools are always read, and of all others a few each time, one
// after the other, for what somebody else may have told it.
// Where too many may have changed to be named, all pools are read, and then the members of those that have: whatever
// HAProxy counts for a server it counts for its backend as well
// (https://github.com/haproxy/haproxy/blob/v2.6.0/src/stream.c#L782). That is much work for HAProxy, whose connections
// wait meanwhile, so that it rests in between for a time that is by far longer: readings until then have listeners only,
// from their sockets where there are many.

import type { Listener } from '../../model/load-balancer.ts';
import { fallbackBackend } from '../../model/names.ts';
import { hasFallback } from '../config/listener-config.ts';
import { hasGroups } from '../config/socket-groups.ts';

export interface DuePoolsOptions {
  /** Goes up with each command for a listener's servers that HAProxy has acknowledged. */
  readonly changesOf: (listener: string) => number;
  readonly now?: () => number;
}

/** As `show stat` has them; may be added up. */
export const [LISTENERS, POOLS, MEMBERS] = [1, 2, 4] as const;

/** What is asked for at a time. */
export interface Question {
  readonly lines: readonly string[];
  /** The answer takes HAProxy long, and is to be taken as it comes. */
  readonly isLong: boolean;
}

interface Known {
  readonly listener: Listener | undefined;
  readonly changes: number;
}

/** Up to so many listeners are told of faster than their sockets, group by group. */
const FEW = 128;
/** Milliseconds in which everything is read at least once, as long as somebody asks. */
const ALL_WITHIN = 600_000;
/** Named at a time: a millisecond of HAProxy's work with ten members each, and far less than a line that it cannot take. */
const AT_ONCE = 8;
/** More than that are not named: HAProxy is faster when it is asked for everything. */
const MOST_NAMED = 64;
/**
 * Milliseconds between two readings of all pools for each row that the first of them had: 600 times of what a row takes
 * HAProxy, so that a six-hundredth of one of its threads is the most; and the longest time, from the end of the first:
 * whoever asks every thirty seconds, or less often, always has everything as it is, and every fifteen seconds where pools
 * and members are less than 6,000.
 */
const REST_PER_ROW = 2.4;
const LONGEST_REST = 29_000;
/** Nothing else becomes a part of a command. */
const NAME = /^[a-z0-9.-]+:[a-z0-9.-]+:[a-z]+:\d+:v[46]$/;

export class DuePools {
  readonly #options: Required<DuePoolsOptions>;
  /** As of the last row of each listener. */
  readonly #known = new Map<string, Known>();
  /** Until they have been read. */
  readonly #due = new Set<string>();
  /** As of the last row of each pool. */
  readonly #down = new Set<string>();
  /**
   * Of this reading: what it reads, all listeners, those of them by HAProxy's numbers of whom only the sockets have been
   * told of, and those whose pools may have changed though they have not.
   */
  #what = '';
  #kinds = 0;
  #byNumber = new Map<string, number>();
  #listeners = new Map<string, Listener | undefined>();
  #doubtful = new Set<string>();
  #unread = new Set<string>();
  #isAll = true;
  /** In the last reading more had changed than can be named. */
  #isCrowded = false;
  #isPutOff = false;
  /** Until when all pools are not read again. */
  #restsUntil = Number.NEGATIVE_INFINITY;
  /** How many listeners the reading before had, and whether fewer of them have sockets that count. */
  #count = 0;
  #isBlind = false;
  /** Of the last reading: what it read, and when. */
  #whatWasRead = '';
  #readAt = 0;
  /** Places among the listeners: up to where the round has come, and comes with this reading. */
  #turn = 0;
  #next = 0;

  constructor(options: DuePoolsOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** Whether the next reading is to begin with the sockets, as there are many listeners. */
  get wantsSockets(): boolean {
    return this.#listeners.size > FEW && !this.#isBlind;
  }

  /**
   * To be called once all sockets have been told of: whether some listener has none that counts, as in a worker that booted
   * from the file of an older agent. Its sockets are not wanted any more then.
   */
  lacksSockets(): boolean {
    this.#isBlind ||= this.#listeners.size < this.#count;
    return this.#isBlind;
  }

  /** Whether this reading takes in everything. */
  get isAll(): boolean {
    return this.#isAll;
  }

  /** A reading of this worker begins. `kinds`: pools, or pools and members, or neither. */
  begin(worker: string, kinds: number): void {
    this.#what = `${worker} ${kinds}`;
    this.#kinds = kinds;
    this.#isAll = this.#what !== this.#whatWasRead || this.#options.now() - this.#readAt >= ALL_WITHIN;
    if (this.#what !== this.#whatWasRead) this.#isBlind = false;
    this.#isPutOff = false;
    this.#count = this.#listeners.size;
    if (this.#isAll) for (const rows of [this.#known, this.#down]) rows.clear();
    this.#listeners = new Map();
    this.#byNumber = new Map();
    this.#doubtful = new Set();
    this.#unread = new Set();
  }

  /**
   * Its row of a listener, or of a socket of it, and then HAProxy's `number` of the listener. `differs`: from the reading
   * before. `isOpen`: has connections.
   */
  listener(
    name: string,
    listener: Listener | undefined,
    differs: boolean,
    isOpen: boolean,
    number?: number,
  ): void {
    const known = this.#known.get(name);
    const changes = this.#options.changesOf(name);
    const isKnown = known !== undefined && known.listener === listener && known.changes === changes;
    if (!isKnown) this.#known.set(name, { listener, changes });
    this.#listeners.set(name, listener);
    if (number !== undefined) this.#byNumber.set(name, number);
    if (differs || !isKnown || isAlwaysDue(listener)) this.#due.add(name);
    // A connection that is open may still be tried again, or leave a queue.
    else if (isOpen || this.#down.has(name)) this.#doubtful.add(name);
  }

  /** Its row of a pool. */
  pool(name: string, differs: boolean, isUp: boolean): void {
    if (differs) this.#due.add(name);
    if (isUp) this.#down.delete(name);
    else this.#down.add(name);
  }

  /**
   * What is to be asked once every listener has been told of, or its sockets; each when the rows of the one before have
   * been, too.
   */
  *questions(): Generator<Question, void, void> {
    if (!this.#isAll) {
      const due = this.#dueAnd(this.#doubtful);
      this.#isCrowded = !areFew(due);
      if (!this.#isCrowded) {
        yield* this.#naming([...due, ...this.#round()], this.#kinds);
        return;
      }
      this.#isPutOff = this.#kinds > 0 && this.#options.now() < this.#restsUntil;
      if (this.#isPutOff) {
        this.#unread = new Set(this.#listeners.keys());
        return;
      }
      if (this.#byNumber.size > 0) yield long(`show stat -1 ${LISTENERS} -1`);
    }
    if ((this.#kinds & POOLS) !== 0) yield long(`show stat -1 ${POOLS} -1`);
    if ((this.#kinds & MEMBERS) === 0) return;
    const due = this.#isAll ? [] : this.#dueAnd([]);
    if (this.#isAll || !areFew(due)) {
      this.#isAll = true;
      this.#unread = new Set();
      yield long(`show stat -1 ${MEMBERS} -1`);
    } else yield* this.#naming([...due, ...this.#round()], MEMBERS);
  }

  /** Listeners that were not asked for, or whose pools or members were not. */
  get unread(): ReadonlySet<string> {
    return this.#unread;
  }

  /** Whether pools and members of this reading are as of one before, though they may have changed since. */
  get isPutOff(): boolean {
    return this.#isPutOff;
  }

  /** The next reading is to have all that has changed, whenever the one before was. */
  catchUp(): void {
    this.#restsUntil = Number.NEGATIVE_INFINITY;
  }

  /** The reading has come to its end, with so many rows of pools and members. */
  done(rows: number): void {
    if (this.#isPutOff) return;
    this.#due.clear();
    this.#whatWasRead = this.#what;
    this.#readAt = this.#options.now();
    this.#turn = this.#next;
    if (this.#isAll || this.#isCrowded)
      this.#restsUntil = this.#readAt + Math.min(LONGEST_REST, rows * REST_PER_ROW);
  }

  /** Of those that are there; leaves the others out. */
  #dueAnd(more: Iterable<string>): readonly string[] {
    const due = new Set([...this.#due, ...more]);
    this.#unread = new Set([...this.#listeners.keys()].filter((name) => !due.has(name)));
    return [...due].filter((name) => this.#listeners.has(name));
  }

  /** Those whose turn it is, of those that are not due. */
  #round(): readonly string[] {
    const count = this.#listeners.size;
    const share = Math.min(1, (this.#options.now() - this.#readAt) / ALL_WITHIN);
    const from = this.#turn < count ? this.#turn : 0;
    this.#next = from + Math.ceil(count * share);
    const names = [...this.#listeners.keys()]
      .slice(from, this.#next)
      .filter((name) => NAME.test(name) && this.#unread.has(name));
    for (const name of names) this.#unread.delete(name);
    return names;
  }

  *#naming(names: readonly string[], kinds: number): Generator<Question, void, void> {
    for (let at = 0; at < names.length; at += AT_ONCE) {
      const lines = this.#linesFor(names.slice(at, at + AT_ONCE), kinds);
      if (lines.length > 0) yield { lines, isLong: false };
    }
  }

  /** Listeners, then pools, then members. */
  #linesFor(names: readonly string[], kinds: number): readonly string[] {
    const backends = names.flatMap((name) => {
      const listener = this.#listeners.get(name);
      return listener !== undefined && hasFallback(listener.pool) ? [name, fallbackBackend(name)] : [name];
    });
    const listeners = kinds === MEMBERS ? [] : names.flatMap((name) => this.#byNumber.get(name) ?? []);
    const below = [POOLS, MEMBERS]
      .filter((kind) => (kinds & kind) !== 0)
      .flatMap((kind) => backends.map((name) => `show stat ${name} ${kind} -1`));
    return [...listeners.map((number) => `show stat ${number} ${LISTENERS} -1`), ...below];
  }
}

function long(line: string): Question {
  return { lines: [line], isLong: true };
}

/** Whether they can be named: not where there are many, or a name is none of ours. */
function areFew(names: readonly string[]): boolean {
  return names.length <= MOST_NAMED && names.every((name) => NAME.test(name));
}

/** Checks find out more than what is counted, and of some addresses no socket is asked for. */
function isAlwaysDue(listener: Listener | undefined): boolean {
  return listener?.pool.monitor !== undefined || !hasGroups(listener?.addresses.length ?? Number.NaN);
}
