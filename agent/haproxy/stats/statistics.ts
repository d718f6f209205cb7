// Reads HAProxy's statistics, one round at a time: the active worker, and each replaced worker until its last connection
// has ended, so that its counts are not lost. Reads nothing before the first round. Owns the connections to the replaced
// workers.

import { BackgroundWrite } from '../../base/background-write.ts';
import { type Clock, passed, systemClock } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { memoByIdentity } from '../../base/memo.ts';
import type { MetricsDetail } from '../../base/metric-family.ts';
import { Rounds } from '../../base/rounds.ts';
import { serial } from '../../base/serial.ts';
import type { ListenerTraffic } from '../../dataplane/status.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { Lane } from '../socket/pipeline.ts';
import { type Info, parseInfo } from '../socket/readings.ts';
import type { Runtime } from '../socket/runtime.ts';
import { readCounts, writeCounts } from './counter-file.ts';
import { CounterTotals, type SeriesByKind } from './counter-totals.ts';
import { listenerTraffic } from './listener-traffic.ts';
import { readTables } from './route-counts.ts';
import type { StatRow } from './stat-rows.ts';
import { REST_FACTOR, readWorker } from './worker-reader.ts';

/** The result of a round. The numbers of the series change with the next round. */
export interface Sample {
  readonly info: Info;
  /** In the order of `infoCounters`. */
  readonly process: readonly number[];
  readonly series: SeriesByKind;
  readonly oldWorkers: number;
  /** Open connections of clients to replaced workers. */
  readonly oldConnections: number;
  /** The duration of the round. */
  readonly seconds: number;
  /** Seconds since the round began. */
  readonly age: () => number;
}

/** Another HAProxy of this agent, whose listeners have the same series. */
export interface OtherHaproxy {
  /** It has listeners. */
  readonly isUsed: () => boolean;
  /** The connection to its active worker; undefined if there is none. */
  readonly worker: () => Runtime | undefined;
}

export interface StatisticsOptions {
  /** The path of the totals on disk. */
  readonly file: string;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** The connection to the active worker; undefined if there is none. */
  readonly active: () => Runtime | undefined;
  readonly detail: () => MetricsDetail;
  /** HAProxy counts the responses of each route. */
  readonly countsRoutes?: boolean;
  /** The number of replaced workers that the master has. Errors: it does not answer, as during a reload. */
  readonly oldWorkers: () => Promise<number>;
  readonly log: Log;
  readonly clock?: Clock;
}

/** `kinds` of readWorker(). */
const KINDS: Readonly<Record<MetricsDetail, number>> = { listener: 1, pool: 3, member: 7 };
/** While a worker is replaced, there may be no active worker for a moment. */
const MAX_ATTEMPTS = 10;
const RETRY_DELAY_MS = 100;
const OLD_WORKERS_INTERVAL_MS = 1_000;
const WRITE_DELAY_MS = 60_000;

export class Statistics {
  readonly #options: StatisticsOptions;
  readonly #clock: Clock;
  readonly #totals: CounterTotals;
  readonly #file: BackgroundWrite;
  readonly #fault = new Fault();
  #otherHaproxy: OtherHaproxy = { isUsed: () => false, worker: () => undefined };
  /** Replaced workers by pid. */
  readonly #old = new Map<number, Runtime>();
  readonly #oldRounds: Rounds;
  /** One at a time, because a count that is less than before counts as begun again. */
  readonly #tableReads = serial();
  #reading: Promise<Sample | undefined> | undefined;
  /** A scrape, or close(), waits for the round under way. */
  #isAwaited = false;
  /** This agent or the previous one has made a round. */
  #isActive = false;
  /** The ids of the last round's active workers. */
  #lastWorkers = '';
  #isClosed = false;

  constructor(options: StatisticsOptions) {
    const { file, log, clock = systemClock, countsRoutes = false } = options;
    this.#options = options;
    this.#clock = clock;
    this.#totals = new CounterTotals(() => clock.monotonic(), { countsRoutes });
    this.#file = new BackgroundWrite({
      write: () => writeCounts(file, this.#totals.counts(this.#isClosed)),
      delayMs: WRITE_DELAY_MS,
      retryMs: WRITE_DELAY_MS,
      onFault: (error) => log.warn('Cannot write the counters of HAProxy', { path: file, error }),
      clock,
    });
    this.#oldRounds = new Rounds({
      intervalMs: () => OLD_WORKERS_INTERVAL_MS,
      work: () => this.#followOld(),
      onFailed: (error) => log.error('Cannot follow old HAProxy workers', { error: messageOf(error) }),
      clock,
    });
  }

  /** Counts the active worker of another HAProxy as well; its replaced workers come by retire(). */
  include(other: OtherHaproxy): void {
    this.#otherHaproxy = other;
  }

  /** Reads the previous agent's totals. */
  async start(): Promise<void> {
    const counts = await readCounts(this.#options.file);
    this.#totals.inherit(counts);
    this.#isActive ||= counts !== undefined;
  }

  /**
   * A new round, or the round under way; undefined if no worker can be read. `isAwaited`: it reads as fast as HAProxy
   * answers, without rests.
   */
  async read({ isAwaited }: { readonly isAwaited: boolean }): Promise<Sample | undefined> {
    if (this.#isClosed) return undefined;
    this.#isActive = true;
    return this.#round(isAwaited);
  }

  /** The traffic of the last round, from memory. */
  traffic(): Iterable<ListenerTraffic> {
    return listenerTraffic(this.#totals.series);
  }

  /** The connections to replaced workers that still have clients. */
  get oldWorkers(): readonly Runtime[] {
    return [...this.#old.values()];
  }

  /** Reads what a worker forgets when another one replaces it: its stick tables. Errors: those of Runtime.ask(). */
  async beforeReload(runtime: Runtime): Promise<void> {
    if (!this.#isActive || this.#isClosed || routedOf(this.#options.desired).length === 0) return;
    const info = parseInfo(await runtime.ask('show info'));
    await this.#readTables(runtime, 'urgent', this.#totals.old(info, this.#options.desired));
  }

  /** Takes over the connection to a replaced worker, and closes it when the worker has no other connection left. */
  retire(runtime: Runtime): void {
    const { pid } = runtime.worker;
    if (this.#isClosed || this.#old.has(pid)) {
      runtime.close();
      return;
    }
    if (this.#old.size === 0) this.#oldRounds.start();
    this.#old.set(pid, runtime);
  }

  /** Reads a last time, and writes the totals to the file. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#oldRounds.close();
    if (this.#isActive) await this.#round(true);
    for (const runtime of this.#old.values()) runtime.close();
    if (this.#lastWorkers !== '') this.#file.soon();
    await this.#file.close();
  }

  #round(isAwaited: boolean): Promise<Sample | undefined> {
    this.#isAwaited ||= isAwaited;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
      this.#isAwaited = false;
    });
    return this.#reading;
  }

  async #read(): Promise<Sample | undefined> {
    const began = this.#clock.monotonic();
    const infos = await this.#readActive();
    if (infos === undefined) return undefined;
    const [info] = infos;
    // Their open connections are added to those of the active worker.
    const others = [...this.#old.values()].map((runtime) => this.#readOld(runtime).catch(() => undefined));
    const olds = (await Promise.all(others)).filter((each) => each !== undefined);
    if (infos.length > 1 || !this.#otherHaproxy.isUsed())
      this.#totals.keepWorkers(new Set([...infos.map(({ pid }) => pid), ...this.#old.keys()]));
    // If this agent is killed, the next agent can only read the active worker again, and only if the file has its id.
    // All other counts must be in the file before they are shown.
    const ids = infos.map(({ id }) => id).join();
    if (ids === this.#lastWorkers && others.length === 0) this.#file.soon();
    else await this.#file.now();
    this.#lastWorkers = ids;
    return {
      info,
      process: this.#totals.process,
      series: this.#totals.series,
      oldConnections: olds.reduce((sum, each) => sum + (each.number('CurrConns') || 0), 0),
      oldWorkers: await this.#options.oldWorkers().catch(() => this.#old.size),
      seconds: (this.#clock.monotonic() - began) / 1_000,
      age: () => (this.#clock.monotonic() - began) / 1_000,
    };
  }

  /** [] if the other HAProxy is not in use, undefined if it cannot be read. */
  async #readOther(rowsOf: (info: Info) => (row: StatRow) => void): Promise<readonly Info[] | undefined> {
    const runtime = this.#otherHaproxy.worker();
    if (runtime === undefined) return this.#otherHaproxy.isUsed() ? undefined : [];
    try {
      const info = parseInfo(await runtime.ask('show info', { lane: 'bulk' }));
      await this.#readRows(runtime, 'bulk', rowsOf(info));
      return [info];
    } catch {
      return undefined;
    }
  }

  /**
   * If the worker is replaced during the round, the round begins again with the new worker. The second one is that of the
   * other HAProxy.
   */
  async #readActive(): Promise<readonly [Info, ...Info[]] | undefined> {
    const { active, desired, log } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const runtime = active();
      try {
        if (runtime === undefined) throw new HeadgateError('RUNTIME_CONNECT', 'No HAProxy worker answers');
        const info = parseInfo(await runtime.ask('show info', { lane: 'bulk' }));
        const { row, ofOther, end } = this.#totals.round(info, desired);
        await this.#readRows(runtime, 'bulk', row);
        const other = await this.#readOther(ofOther);
        end(other !== undefined);
        this.#fault.clear();
        return [info, ...(other ?? [])];
      } catch (error) {
        if (attempt < MAX_ATTEMPTS && !this.#isClosed) {
          await this.#wait(RETRY_DELAY_MS);
          if (runtime === undefined || runtime !== active()) continue;
        }
        const message = messageOf(error);
        if (this.#fault.set(message)) log.warn('Cannot read the statistics of HAProxy', { error: message });
        return undefined;
      }
    }
  }

  /** On the existing connection: an old worker accepts no other. */
  async #readOld(runtime: Runtime): Promise<Info> {
    const info = parseInfo(await runtime.ask('show info'));
    await this.#readRows(runtime, 'urgent', this.#totals.old(info, this.#options.desired));
    return info;
  }

  async #readRows(runtime: Runtime, lane: Lane, onRow: (row: StatRow) => void): Promise<void> {
    await this.#readTables(runtime, lane, onRow);
    await readWorker({
      runtime,
      lane,
      kinds: KINDS[this.#options.detail()],
      onRow: (row) => {
        const proxy = runtime.names.inAgent(row.proxy);
        onRow(proxy === row.proxy ? row : { ...row, proxy });
      },
      pause: async (tookMs) => {
        if (!this.#isAwaited) await this.#wait(tookMs * REST_FACTOR);
      },
      now: () => this.#clock.monotonic(),
    });
  }

  async #readTables(runtime: Runtime, lane: Lane, onRow: (row: StatRow) => void): Promise<void> {
    const { countsRoutes = false, desired } = this.#options;
    const listeners = routedOf(desired);
    if (listeners.length === 0) return;
    await this.#tableReads.run(() => readTables(runtime, { lane, listeners, countsRoutes }, onRow));
  }

  async #followOld(): Promise<void> {
    for (const [pid, runtime] of this.#old) {
      try {
        if (this.#isActive) {
          const info = parseInfo(await runtime.ask('show info'));
          if (!info.stopping || info.number('CurrConns') > 0) continue;
          // A round may still read it as the active worker, on another connection, and with older answers.
          await this.#reading;
          await this.#readOld(runtime);
          await this.#file.now();
        }
      } catch (error) {
        this.#options.log.debug('An old HAProxy worker has ended', { worker: pid, error: messageOf(error) });
      }
      runtime.close();
      this.#old.delete(pid);
    }
    if (this.#old.size === 0) this.#oldRounds.close();
  }

  #wait(milliseconds: number): Promise<void> {
    return passed(this.#clock, milliseconds);
  }
}

/** The names of listeners with routes for HTTP, for which HAProxy counts. */
function routedOf(loadBalancers: ReadonlyMap<string, LoadBalancer>): readonly string[] {
  return Array.from(loadBalancers.values(), routedNames).flat();
}

const routedNames = memoByIdentity(({ listeners }: LoadBalancer) =>
  listeners.filter(({ routing }) => routing?.kind === 'http').map(({ name }) => name),
);
