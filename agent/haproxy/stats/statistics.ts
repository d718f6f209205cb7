// Reads HAProxy's statistics, a round at a time: the active worker, and each worker that was replaced until its last
// connection has ended, so that nothing it counts is lost. Reads nothing before the first round is asked for.
// Owns the connections to the replaced workers.

import { BackgroundWrite } from '../../base/background-write.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { MetricsDetail } from '../../base/metric-family.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { Lane } from '../socket/pipeline.ts';
import { type Info, parseInfo } from '../socket/readings.ts';
import type { Runtime } from '../socket/runtime.ts';
import { readCounts, writeCounts } from './counter-file.ts';
import { CounterTotals, type SeriesByKind } from './counter-totals.ts';
import type { StatRow } from './stat-rows.ts';
import { readWorker } from './worker-reader.ts';

/** What a round has read. The numbers of the series change with the next round. */
export interface Sample {
  readonly info: Info;
  /** In the order of `infoCounters`. */
  readonly process: readonly number[];
  readonly series: SeriesByKind;
  readonly oldWorkers: number;
  /** How long the round took. */
  readonly seconds: number;
  /** Seconds since the round began. */
  readonly age: () => number;
}

export interface StatisticsOptions {
  /** Where the totals are kept. */
  readonly file: string;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** The connection to the worker that takes connections now; undefined while there is none. */
  readonly active: () => Runtime | undefined;
  readonly detail: () => MetricsDetail;
  readonly log: Log;
  readonly clock?: Clock;
}

/** As readWorker() has them. */
const KINDS: Readonly<Record<MetricsDetail, number>> = { listener: 1, pool: 3, member: 7 };
/** The rest after a portion, in times of how long it took: so a round uses at most a tenth of one HAProxy thread. */
const REST_FACTOR = 10;
/** While a worker is being replaced there may be none for a moment: so often one is looked for. */
const TRIES = 10;
const RETRY_DELAY_MS = 100;
/** From the replacement of a worker to the first look at its connections: clients that waited for the new one come first. */
const SETTLE_DELAY_MS = 1_000;
const OLD_WORKER_INTERVAL_MS = 1_000;
const WRITE_DELAY_MS = 60_000;

export class Statistics {
  readonly #options: StatisticsOptions;
  readonly #clock: Clock;
  readonly #totals: CounterTotals;
  readonly #file: BackgroundWrite;
  readonly #fault = new Fault();
  /** By pid: workers that were replaced. */
  readonly #old = new Map<number, Runtime>();
  #reading: Promise<Sample | undefined> | undefined;
  /** A scrape, or the end of the agent, waits for the round under way. */
  #isAwaited = false;
  /** A round was asked for, by this agent or the one before it. */
  #isActive = false;
  /** Id of the worker of the last round. */
  #lastWorker = '';
  #isClosed = false;

  constructor(options: StatisticsOptions) {
    const { file, log, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#totals = new CounterTotals(() => clock.monotonic());
    this.#file = new BackgroundWrite({
      write: () => writeCounts(file, this.#totals.counts(this.#isClosed)),
      delayMs: WRITE_DELAY_MS,
      retryMs: WRITE_DELAY_MS,
      onFault: (error) => log.warn('Cannot write the counters of HAProxy', { path: file, error }),
      clock,
    });
  }

  /** Takes over what the agent before this one had counted. */
  async start(): Promise<void> {
    const counts = await readCounts(this.#options.file);
    this.#totals.inherit(counts);
    this.#isActive ||= counts !== undefined;
  }

  /**
   * One round, or the one that is under way; undefined if no worker can be read. `isAwaited`: it reads as fast as
   * HAProxy answers, without rests.
   */
  async read({ isAwaited }: { readonly isAwaited: boolean }): Promise<Sample | undefined> {
    if (this.#isClosed) return undefined;
    this.#isActive = true;
    return this.#round(isAwaited);
  }

  /** Follows a worker that was replaced until it has no connection left, and closes the connection to it. */
  retire(runtime: Runtime): void {
    const { pid } = runtime.worker;
    if (this.#isClosed || this.#old.has(pid)) {
      runtime.close();
      return;
    }
    this.#old.set(pid, runtime);
    void this.#follow(runtime);
  }

  /** Reads a last time and writes everything to the file. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#isActive) await this.#round(true);
    for (const runtime of this.#old.values()) runtime.close();
    if (this.#lastWorker !== '') this.#file.soon();
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
    const others = [...this.#old.values()].map((runtime) => this.#readOld(runtime).catch(() => undefined));
    const [info] = await Promise.all([this.#readActive(), ...others]);
    if (info === undefined) return undefined;
    this.#totals.keepWorkers(new Set([info.pid, ...this.#old.keys()]));
    // After a kill the next agent reads the active worker again, but only if the file knows it, and no other worker.
    // What it could not read again is in the file before it is shown.
    if (info.id === this.#lastWorker && others.length === 0) this.#file.soon();
    else await this.#file.now();
    this.#lastWorker = info.id;
    return {
      info,
      process: this.#totals.process,
      series: this.#totals.series,
      oldWorkers: this.#old.size,
      seconds: (this.#clock.monotonic() - began) / 1_000,
      age: () => (this.#clock.monotonic() - began) / 1_000,
    };
  }

  /** If the worker is replaced during the round, the round begins again with the new one. */
  async #readActive(): Promise<Info | undefined> {
    const { active, wanted, log } = this.#options;
    for (let tries = 1; ; tries++) {
      const runtime = active();
      try {
        if (runtime === undefined) throw new HeadgateError('RUNTIME_CONNECT', 'No HAProxy worker answers');
        const info = parseInfo(await runtime.ask('show info', { lane: 'bulk' }));
        const { row, end } = this.#totals.round(info, wanted);
        await this.#readRows(runtime, 'bulk', row);
        end();
        this.#fault.clear();
        return info;
      } catch (error) {
        if (tries < TRIES && !this.#isClosed) {
          await this.#wait(RETRY_DELAY_MS);
          if (runtime === undefined || runtime !== active()) continue;
        }
        const message = messageOf(error);
        if (this.#fault.set(message)) log.warn('Cannot read the statistics of HAProxy', { error: message });
        return undefined;
      }
    }
  }

  /** On the connection that it has: an old worker accepts no other. */
  async #readOld(runtime: Runtime): Promise<void> {
    const info = parseInfo(await runtime.ask('show info'));
    await this.#readRows(runtime, 'urgent', this.#totals.old(info));
  }

  #readRows(runtime: Runtime, lane: Lane, onRow: (row: StatRow) => void): Promise<void> {
    return readWorker({
      runtime,
      lane,
      kinds: KINDS[this.#options.detail()],
      onRow,
      pause: async (tookMs) => {
        if (!this.#isAwaited) await this.#wait(tookMs * REST_FACTOR);
      },
      now: () => this.#clock.monotonic(),
    });
  }

  async #follow(runtime: Runtime): Promise<void> {
    const { pid } = runtime.worker;
    await this.#wait(SETTLE_DELAY_MS);
    try {
      while (this.#isActive && !this.#isClosed) {
        const info = parseInfo(await runtime.ask('show info'));
        if (info.stopping && info.number('CurrConns') === 0) {
          // A round may still read it as the active worker, on another connection, whose answers could be older.
          await this.#reading;
          await this.#readOld(runtime);
          await this.#file.now();
          break;
        }
        await this.#wait(OLD_WORKER_INTERVAL_MS);
      }
    } catch (error) {
      this.#options.log.debug('An old HAProxy worker has ended', { worker: pid, error: messageOf(error) });
    }
    runtime.close();
    this.#old.delete(pid);
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(milliseconds, resolve));
  }
}
