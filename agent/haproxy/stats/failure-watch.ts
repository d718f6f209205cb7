// Finds members that fail clients although no health monitor says so, from HAProxy's own counters: a round reads `show
// stat` of each backend, and of each frontend with routes, and the servers of a backend only if something went wrong. The
// rounds rest between portions like those of the metrics, so that they take a bounded part of one HAProxy thread.
// Why: docs/design/decisions/0080-failures-of-clients.md

import { type Clock, passed, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import { FailureWindow, type Interval } from '../../dataplane/failure-window.ts';
import type { MemberFailures, RecentFailures } from '../../dataplane/recent-failures.ts';
import type { Log } from '../../host/log.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { isListener, listenerOfBackend, ownerOfListener } from '../../model/names.ts';
import type { Runtime } from '../socket/runtime.ts';
import {
  counted,
  hasAborts,
  hasAnswered,
  hasTrouble,
  intervalOfClients,
  intervalOfMember,
  openOf,
  type Reading,
  readingOf,
  unanswered,
} from './failure-window.ts';
import { keyOf } from './series.ts';
import { parseStatRows, type StatRow } from './stat-rows.ts';
import { REST_FACTOR, readWorker } from './worker-reader.ts';

export interface FailureWatchOptions {
  /** The connection to the active worker; undefined if there is none. */
  readonly active: () => Runtime | undefined;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** Keys of load balancers whose verdict may be another one. */
  readonly onChanged: (keys: readonly string[]) => void;
  readonly log: Log;
  readonly clock?: Clock;
}

const WINDOW_MS = 60_000;
/** From the end of a round to the next. */
const INTERVAL_MS = 10_000;
/** Frontends and backends. */
const BOTH_ENDS = 3;
const SERVERS = 4;
/** Backends whose servers are read in one round; the others follow in the next. */
const MAX_READ = 256;
/** Backends in a portion. */
const PORTION = 16;

/** A backend, or a frontend with routes, that has failed clients or had trouble with its members. */
interface Entry {
  readonly window: FailureWindow;
  readonly members: Map<string, FailureWindow>;
  /** By the row's key. */
  readonly read: Map<string, Reading>;
  /** Connections of the backend, and its fallback, when it was read last. */
  open: number;
  /** In the last round a member has sent something. */
  answered: boolean;
  /** Connections of the last round that silent members have not answered. */
  silent: number;
  /** When something went wrong at a member last. */
  troubledAt: number;
  /** As of the end of the last round. */
  known: RecentFailures | undefined;
}

/** What this round has found of a listener. */
interface Found {
  readonly intervals: Interval[];
  open: number;
  isTroubled: boolean;
  hasAnswered: boolean;
  /** Proxies with its servers. */
  readonly proxies: number[];
}

export class FailureWatch {
  readonly #options: FailureWatchOptions;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  /** Row → what it had when it was read last. */
  #last: Map<string, Reading> | undefined;
  #pid = 0;
  readonly #entries = new Map<string, Entry>();
  /** Listeners of mode `tcp` whose members have answered, in this worker or one before. */
  #answering: ReadonlySet<string> = new Set();

  constructor(options: FailureWatchOptions) {
    this.#options = options;
    const { clock = systemClock, log } = options;
    this.#clock = clock;
    this.#rounds = new Rounds({
      intervalMs: () => INTERVAL_MS,
      work: () => this.#round(),
      // A lost connection is reported by the active worker.
      onFailed: (error) => log.debug('Cannot read what fails clients now', { error: messageOf(error) }),
      clock,
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  /** As of the end of the last round, so that all who ask get the same; undefined if nothing failed in the minute before. */
  of(listener: string): RecentFailures | undefined {
    return this.#entries.get(listener)?.known;
  }

  async #round(): Promise<void> {
    const runtime = this.#options.active();
    if (runtime === undefined) return;
    // Every counter of another worker than the first one began at 0 when the agent got it.
    const isFirst = this.#last === undefined;
    const last = runtime.worker.pid === this.#pid ? this.#last : undefined;
    const now = new Map<string, Reading>();
    const found = new Map<string, Found>();
    const answering = new Set<string>();
    await readWorker({
      runtime,
      lane: 'bulk',
      kinds: BOTH_ENDS,
      onRow: (row, proxy) => this.#take(row, proxy, runtime, { isFirst, last, now, found, answering }),
      pause: (tookMs) => passed(this.#clock, tookMs * REST_FACTOR),
      now: () => this.#clock.monotonic(),
    });
    const isOtherWorker = runtime.worker.pid !== this.#pid;
    this.#last = now;
    this.#pid = runtime.worker.pid;
    this.#answering = answering;
    if (isOtherWorker) for (const { read } of this.#entries.values()) read.clear();
    await this.#readServers(runtime, this.#note(found), isOtherWorker && !isFirst);
    this.#add(found);
    this.#tell();
  }

  #take(
    row: StatRow,
    proxy: number,
    { names }: Runtime,
    round: {
      readonly isFirst: boolean;
      readonly last: ReadonlyMap<string, Reading> | undefined;
      readonly now: Map<string, Reading>;
      readonly found: Map<string, Found>;
      readonly answering: Set<string>;
    },
  ): void {
    const backend = names.inAgent(row.proxy);
    const listener = listenerOfBackend(backend);
    if (!isListener(listener)) return;
    const isFrontend = row.name === 'FRONTEND';
    // What a frontend without routes could not do for its clients, its backend counts.
    if (isFrontend && this.#listener(listener)?.routing?.kind !== 'http') return;
    const key = keyOf(backend, row.name);
    const reading = readingOf(row);
    round.now.set(key, reading);
    const known = this.#entries.get(listener);
    const difference = counted(round.isFirst ? reading : round.last?.get(key), reading);
    const answers = row.mode !== 'http' && (this.#answering.has(listener) || hasAnswered(reading));
    if (answers) round.answering.add(listener);
    const isTroubled = hasTrouble(difference) || unanswered(difference, answers) > 0;
    // One of several members may be silent: its own counters are read.
    if (known === undefined && !isTroubled && !(answers && hasAborts(difference))) return;
    const found = round.found.get(listener) ?? newFound();
    round.found.set(listener, found);
    found.intervals.push(intervalOfClients(row, difference, answers));
    found.isTroubled ||= isTroubled;
    found.hasAnswered ||= hasAnswered(difference);
    if (isFrontend) return;
    found.open += openOf(row);
    found.proxies.push(proxy);
  }

  #listener(name: string): Listener | undefined {
    return this.#options.desired.get(ownerOfListener(name))?.listeners.find((each) => each.name === name);
  }

  /** The proxies whose servers are to be read, by listener; those with only aborts of connections last. */
  #note(found: ReadonlyMap<string, Found>): ReadonlyMap<string, readonly number[]> {
    const at = this.#clock.monotonic();
    const toRead: [string, readonly number[]][] = [];
    for (const isTroubled of [true, false])
      for (const [listener, { open, proxies, ...own }] of found) {
        if (own.isTroubled !== isTroubled) continue;
        const entry = this.#entries.get(listener) ?? newEntry(at);
        this.#entries.set(listener, entry);
        Object.assign(entry, { open, answered: own.hasAnswered, silent: 0 });
        if (isTroubled) entry.troubledAt = at;
        if (proxies.length > 0) toRead.push([listener, proxies]);
      }
    return new Map(toRead.slice(0, MAX_READ));
  }

  /** Adds the round to the windows, with what a silent member of several has cost. */
  #add(found: ReadonlyMap<string, Found>): void {
    const at = this.#clock.monotonic();
    for (const [listener, { intervals }] of found) {
      const entry = this.#entries.get(listener);
      if (entry === undefined) continue;
      const all = joined(intervals);
      const silent = entry.answered ? entry.silent : 0;
      if (silent > 0) entry.troubledAt = at;
      const failed = all.failed + silent;
      entry.window.add({ ...all, failed, tried: Math.max(failed, all.tried) }, at);
    }
  }

  /** `isFresh`: the worker has counted from 0 since the last round. */
  async #readServers(
    runtime: Runtime,
    toRead: ReadonlyMap<string, readonly number[]>,
    isFresh: boolean,
  ): Promise<void> {
    const questions = [...toRead].flatMap(([listener, proxies]) =>
      proxies.map((proxy) => ({ listener, question: `show stat ${proxy} ${SERVERS} -1` })),
    );
    for (let first = 0; first < questions.length; first += PORTION) {
      const began = this.#clock.monotonic();
      const portion = questions.slice(first, first + PORTION);
      const answers = await runtime.askAll(
        portion.map(({ question }) => question),
        { lane: 'bulk' },
      );
      for (const [at, { listener }] of portion.entries()) {
        const entry = this.#entries.get(listener);
        for (const row of parseStatRows(answers[at] ?? ''))
          if (entry) takeServer(entry, row, this.#answering.has(listener), isFresh, this.#clock.monotonic());
      }
      await passed(this.#clock, (this.#clock.monotonic() - began) * REST_FACTOR);
    }
  }

  /** Forgets what has been well for a minute, and reports what is another verdict than before. */
  #tell(): void {
    const now = this.#clock.monotonic();
    const changed = new Set<string>();
    for (const [listener, entry] of this.#entries) {
      const isOver =
        now - entry.troubledAt > WINDOW_MS ||
        this.#options.desired.get(ownerOfListener(listener)) === undefined;
      if (isOver) this.#entries.delete(listener);
      const before = inWords(entry.known);
      entry.known = isOver ? undefined : failuresOf(entry);
      if (inWords(entry.known) !== before) changed.add(ownerOfListener(listener));
    }
    if (changed.size > 0) this.#options.onChanged([...changed]);
  }
}

function newFound(): Found {
  return { intervals: [], open: 0, isTroubled: false, hasAnswered: false, proxies: [] };
}

function newEntry(at: number): Entry {
  return {
    window: new FailureWindow(WINDOW_MS),
    members: new Map(),
    read: new Map(),
    open: 0,
    answered: false,
    silent: 0,
    troubledAt: at,
    known: undefined,
  };
}

function failuresOf({ window, members: read }: Entry): RecentFailures | undefined {
  const { unit, tried, failed } = window.sum();
  const members = new Map<string, MemberFailures>();
  for (const [name, own] of read) if (own.isOpen) members.set(name, own.sum());
  if (failed === 0 && members.size === 0) return undefined;
  return { unit, tried, failed, share: window.share, members };
}

/** The first reading of a server only says what it has counted so far, unless its worker is new. */
function takeServer(entry: Entry, row: StatRow, answers: boolean, isFresh: boolean, at: number): void {
  const key = keyOf(row.proxy, row.name);
  const reading = readingOf(row);
  const last = entry.read.get(key);
  entry.read.set(key, reading);
  if (last === undefined && !isFresh) return;
  const window = entry.members.get(row.name) ?? new FailureWindow(WINDOW_MS);
  entry.members.set(row.name, window);
  const difference = counted(last, reading);
  if (row.mode !== 'http') entry.silent += unanswered(difference, answers);
  window.add(intervalOfMember(row, difference, entry.open, answers), at);
}

/** The interval of a backend together with that of its fallback. */
function joined(intervals: readonly Interval[]): Interval {
  const [first, ...others] = intervals;
  if (first === undefined) return { unit: 'connections', tried: 0, failed: 0, hasSuccess: false };
  return others.reduce(
    (sum, each) => ({
      unit: sum.unit,
      tried: sum.tried + each.tried,
      failed: sum.failed + each.failed,
      hasSuccess: sum.hasSuccess || each.hasSuccess,
    }),
    first,
  );
}

/** What the verdict depends on, without the numbers, which change with every round. */
function inWords(failures: RecentFailures | undefined): string {
  if (failures === undefined) return '';
  const dead = [...failures.members].filter(([, { isAll }]) => isAll).map(([name]) => name);
  return [failures.share, ...dead.sort()].join(' ');
}
