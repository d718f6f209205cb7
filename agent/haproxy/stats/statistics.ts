// HAProxy's statistics for those who scrape: reads the worker that takes connections when asked, and follows each
// worker that was replaced to its last connection, so that what it still counts is not lost.
// Does nothing until somebody asks for the first time. Owns the connections of workers that it was given.

import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Slice } from '../../base/slice.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { GRACE_MS } from '../config/grace.ts';
import type { Runtime } from '../socket/runtime.ts';
import { readCounts, writeCounts } from './counter-file.ts';
import { Ledger } from './counter-totals.ts';
import { DuePools, LISTENERS, MEMBERS, POOLS } from './due-pools.ts';
import { type ProcessInfo, readProcessInfo } from './process-info.ts';
import type { Series } from './series.ts';
import type { Block } from './series-blocks.ts';
import { SocketReader } from './socket-reader.ts';
import { StatAnswer } from './stat-reader.ts';
import { readWorker } from './worker-reading.ts';

/** How far down the series go. */
export type MetricsDetail = 'listener' | 'pool' | 'member';

/** One reading, as it is shown. The series' numbers may be newer where another reading has followed. */
export interface Sample {
  readonly info: ProcessInfo;
  /** In the order of `infoCounters`. */
  readonly process: readonly number[];
  readonly blocks: Readonly<Record<Series['kind'], readonly Block[]>>;
  readonly oldWorkers: number;
  /** Of the reading. */
  readonly seconds: number;
  /** For how many seconds what has changed of pools and members has not been read, 0 where it was. */
  readonly age: number;
}

export interface StatisticsOptions {
  readonly adminSocket: string;
  /** Where the totals are kept. */
  readonly file: string;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  readonly workerPid: () => number | undefined;
  /** Goes up with each command for a listener's servers that HAProxy has acknowledged. */
  readonly changesOf: (listener: string) => number;
  readonly detail: () => MetricsDetail;
  readonly log: Log;
}

/** What there are series of besides listeners. */
const BELOW: Readonly<Record<MetricsDetail, number>> = { listener: 0, pool: POOLS, member: POOLS + MEMBERS };
/**
 * Milliseconds between two writes of the file while the same worker counts, which tells the next agent itself what it has
 * counted since; of one after its reading; and between two readings where nobody asks.
 */
const WRITE_EVERY = 60_000;
const WRITE_AFTER = 1_000;
const SAMPLE_EVERY = 60_000;
/**
 * Milliseconds for which a worker that was replaced is left alone. To be read takes it 40 ms of a processor where it has
 * 10,000 servers, and to end, which it does once it is let go, 50 ms more: clients that waited for the new worker, and
 * what that one is still to be told, come first.
 */
const REST = 1_000;
/** Milliseconds between two readings of an old worker; longer where one takes long. */
const FOLLOW_EVERY = 1_000;
const FOLLOW_SHARE = 20;
/** Milliseconds between two tries while two workers answer, and for how long that may last. */
const AGAIN = 10;
const OVERLAPS = 3 * GRACE_MS;
/** Characters of an old worker's answer that are taken in at a stretch. */
const PIECE = 64 * 1024;

export class Statistics {
  readonly #options: StatisticsOptions;
  readonly #ledger = new Ledger();
  readonly #duePools: DuePools;
  readonly #sockets = new SocketReader();
  readonly #retiring = new Map<number, Runtime>();
  #sampling: Promise<Sample | undefined> | undefined;
  /** One reading at a time: one that is older must not come after one that is newer. */
  #last: Promise<unknown> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #writtenAt = Number.NEGATIVE_INFINITY;
  #sampledAt = 0;
  /** The worker of the last reading. */
  #sampled = '';
  #isActive = false;
  #timer: NodeJS.Timeout | undefined;
  #writingLater: NodeJS.Timeout | undefined;
  #fault = '';
  #closed = false;

  constructor(options: StatisticsOptions) {
    this.#options = options;
    this.#duePools = new DuePools(options);
  }

  /** Takes up what an agent before this one had counted. */
  async start(): Promise<void> {
    const counts = await readCounts(this.#options.file);
    this.#ledger.inherit(counts);
    this.#isActive = counts !== undefined;
    this.#timer = setInterval(() => {
      if (this.#isActive && performance.now() - this.#sampledAt >= SAMPLE_EVERY) void this.sample();
    }, SAMPLE_EVERY).unref();
  }

  /** Reads now; undefined where no worker can be read. Those who ask while a reading is under way share it. */
  sample(): Promise<Sample | undefined> {
    this.#isActive = true;
    this.#sampling ??= this.#inTurn(() => this.#sample()).finally(() => {
      this.#sampling = undefined;
    });
    return this.#sampling;
  }

  /**
   * Leaves a worker that was replaced alone for a second, follows it until it has no connection any more, where somebody
   * asks for what it counts, and closes the connection to it.
   */
  retire(runtime: Runtime): void {
    const { pid } = runtime.worker;
    if (this.#closed || this.#retiring.has(pid)) {
      runtime.close();
      return;
    }
    this.#retiring.set(pid, runtime);
    void this.#follow(runtime);
  }

  /** Reads a last time and writes down everything. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#closed) return;
    this.#duePools.catchUp();
    if (this.#isActive) await this.sample();
    this.#closed = true;
    for (const runtime of this.#retiring.values()) runtime.close();
    if (this.#sampledAt > 0) await this.#write(true);
  }

  async #sample(): Promise<Sample | undefined> {
    if (this.#closed) return undefined;
    const { workerPid, log } = this.#options;
    const began = performance.now();
    let info: ProcessInfo;
    try {
      info = await this.#readOne();
    } catch (error) {
      if (this.#fault !== messageOf(error))
        log.warn('Cannot read the statistics of HAProxy', { error: messageOf(error) });
      this.#fault = messageOf(error);
      return undefined;
    }
    this.#fault = '';
    this.#sampledAt = performance.now();
    this.#ledger.keepWorkers(new Set([info.pid, workerPid() ?? 0, ...this.#retiring.keys()]));
    if (info.id !== this.#sampled || this.#sampledAt - this.#writtenAt >= WRITE_EVERY) this.#writeLater();
    this.#sampled = info.id;
    const blocks = {
      listener: this.#ledger.blocks('listener'),
      pool: this.#ledger.blocks('pool'),
      member: this.#ledger.blocks('member'),
    };
    const seconds = (this.#sampledAt - began) / 1_000;
    const { process, age } = this.#ledger;
    return { info, process, blocks, oldWorkers: this.#retiring.size, seconds, age };
  }

  /**
   * While a worker takes the place of another one both answer: again until all is of one, and that is not the one that
   * leaves, unless there is no other. Errors: as readWorker().
   */
  async #readOne(): Promise<ProcessInfo> {
    const { adminSocket, wanted, detail } = this.#options;
    const until = performance.now() + OVERLAPS;
    for (;;) {
      const isLate = performance.now() >= until;
      try {
        return await readWorker({
          adminSocket,
          wanted,
          kinds: BELOW[detail()],
          ledger: this.#ledger,
          due: this.#duePools,
          sockets: this.#sockets,
          isAnyone: isLate,
        });
      } catch (error) {
        if (isLate || !(error instanceof HeadgateError) || error.retry !== 'now') throw error;
        await delay(AGAIN);
      }
    }
  }

  async #follow(runtime: Runtime): Promise<void> {
    const { pid } = runtime.worker;
    await delay(REST, undefined, { ref: false });
    try {
      for (let isEmpty = !this.#isActive; !isEmpty && !this.#closed; ) {
        const began = performance.now();
        isEmpty = await this.#inTurn(() => this.#readOld(runtime));
        void this.#write(false);
        const took = performance.now() - began;
        if (!isEmpty) await delay(Math.max(FOLLOW_EVERY, took * FOLLOW_SHARE), undefined, { ref: false });
      }
    } catch (error) {
      this.#options.log.debug('An old worker has ended', { worker: pid, error: messageOf(error) });
    }
    runtime.close();
    this.#retiring.delete(pid);
  }

  /** True where it has no connection left, and so will count nothing more. */
  async #readOld(runtime: Runtime): Promise<boolean> {
    const text = await runtime.ask('show info');
    const rows = await runtime.ask(`show stat -1 ${LISTENERS + BELOW[this.#options.detail()]} -1`);
    const info = readProcessInfo(text);
    const answer = new StatAnswer({ onInfo: () => undefined, onRow: this.#ledger.old(info) });
    const slice = new Slice();
    answer.feed(Buffer.from('\n\n'));
    for (let at = 0; at < rows.length; at += PIECE) {
      answer.feed(Buffer.from(rows.slice(at, at + PIECE), 'latin1'));
      if (slice.isOver) await slice.breathe();
    }
    answer.feed(Buffer.from('\n\n'));
    answer.end();
    return info.stopping && info.gauge('CurrConns') === 0;
  }

  #inTurn<T>(read: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(read);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Once those who have asked have been answered: it would make both longer. */
  #writeLater(): void {
    this.#writingLater ??= setTimeout(() => void this.#write(false), WRITE_AFTER).unref();
  }

  #write(isClean: boolean): Promise<void> {
    clearTimeout(this.#writingLater);
    this.#writingLater = undefined;
    this.#writtenAt = performance.now();
    this.#writing = this.#writing.then(() =>
      writeCounts(this.#options.file, this.#ledger.counts(isClean)).catch((error: unknown) =>
        this.#options.log.debug('Cannot write down the counters', { error: messageOf(error) }),
      ),
    );
    return this.#writing;
  }
}
