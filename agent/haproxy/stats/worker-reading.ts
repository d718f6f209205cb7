// One reading of the worker that takes connections, from its listeners to the members: what is little is asked for in
// portions on one connection, what is much is taken as it comes on one of its own. All of it is of the same worker.

import { HeadgateError } from '../../base/errors.ts';
import { BESIDE_TRAFFIC, Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { hasGroups } from '../config/socket-groups.ts';
import { Runtime } from '../socket/runtime.ts';
import { positionOf } from './columns.ts';
import { type Ledger, OURS } from './counter-totals.ts';
import { type DuePools, LISTENERS } from './due-pools.ts';
import { type ProcessInfo, readProcessInfo } from './process-info.ts';
import type { SocketReader, SocketReading } from './socket-reader.ts';
import { sumsOf } from './socket-rows.ts';
import { readStatistics } from './stat-reader.ts';
import { type StatRow, StatRows } from './stat-rows.ts';

export interface WorkerReadingOptions {
  readonly adminSocket: string;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** What there are series of besides listeners, as `show stat` has them. */
  readonly kinds: number;
  readonly ledger: Ledger;
  readonly due: DuePools;
  readonly sockets: SocketReader;
  /** Also one that is on its way out. */
  readonly isAnyone: boolean;
}

const OPEN = positionOf('scur');
/** Milliseconds. */
const TIMEOUT = 3_000;

/**
 * Takes one reading into the ledger. Errors: as readStatistics(), RUNTIME_CLOSED to be tried again where another worker
 * has answered in between, or one that is on its way out has.
 */
export async function readWorker(options: WorkerReadingOptions): Promise<ProcessInfo> {
  const reading = new WorkerReading(options);
  try {
    return await reading.run();
  } finally {
    reading.close();
  }
}

class WorkerReading {
  readonly #options: WorkerReadingOptions;
  readonly #slice = new Slice(BESIDE_TRAFFIC);
  readonly #rows = new StatRows((row) => this.#take(row));
  #sockets: SocketReading = { rows: [], differ: new Set() };
  /** One connection for what is asked for in portions: no other worker answers in between. */
  #runtime: Runtime | undefined;
  #info: ProcessInfo | undefined;
  #taking: ReturnType<Ledger['current']> | undefined;
  #count = 0;

  constructor(options: WorkerReadingOptions) {
    this.#options = options;
  }

  /** All listeners first, or, where they are many, their sockets; then what may have changed. */
  async run(): Promise<ProcessInfo> {
    const { due } = this.#options;
    if (due.wantsSockets) await this.#readSockets();
    if (this.#info === undefined || due.isAll || due.lacksSockets())
      await this.#readLong(`show stat -1 ${LISTENERS} -1`);
    this.#count = 0;
    for (const { lines, isLong } of due.questions()) {
      await this.#slice.pause();
      await (isLong ? this.#readLong(lines.join(';')) : this.#readShort(lines));
    }
    if (due.isPutOff) await this.#countSockets();
    const info = this.#info;
    if (info === undefined)
      throw new HeadgateError('RUNTIME_REPLY', "Cannot read HAProxy's statistics: there are none");
    await this.#slice.pause();
    this.#taking?.end({ unread: due.unread, isPutOff: due.isPutOff });
    due.done(this.#count);
    await this.#slice.pause();
    return info;
  }

  close(): void {
    this.#runtime?.close();
  }

  async #readSockets(): Promise<void> {
    const { due, sockets } = this.#options;
    const runtime = await this.#connected();
    this.#sockets = await sockets.read(this.#info?.id ?? '', (lines) => runtime.askAll(lines));
    if (due.isAll) return;
    const { rows, differ } = this.#sockets;
    for (const row of rows) {
      const { listener, isOpen, id } = row;
      if (OURS.test(listener))
        due.listener(listener, this.#taking?.listener(listener), differ.has(row), isOpen, id);
      if (this.#slice.isOver) await this.#slice.pause();
    }
  }

  /** What is put off has listeners all the same: those of them whose sockets differ, where sockets were read. */
  async #countSockets(): Promise<void> {
    const { rows, differ } = this.#sockets;
    const differing = new Set(Array.from(differ, ({ listener }) => listener));
    for (const [name, counts] of sumsOf(rows.filter(({ listener }) => differing.has(listener)))) {
      if (hasGroups(this.#taking?.listener(name)?.addresses.length ?? Number.NaN))
        this.#taking?.counted(name, counts);
      if (this.#slice.isOver) await this.#slice.pause();
    }
  }

  async #readShort(lines: readonly string[]): Promise<void> {
    const runtime = await this.#connected();
    for (const text of await runtime.askAll(lines)) this.#rows.feed(Buffer.from(`${text}\n`, 'latin1'));
  }

  #readLong(commands: string): Promise<void> {
    return readStatistics(this.#options.adminSocket, {
      commands,
      timeoutMs: TIMEOUT,
      onInfo: (text) => this.#meet(readProcessInfo(text)),
      onRow: (row) => this.#take(row),
    });
  }

  async #connected(): Promise<Runtime> {
    if (this.#runtime === undefined) {
      this.#runtime = await Runtime.connect({ socketPath: this.#options.adminSocket, timeoutMs: TIMEOUT });
      this.#meet(readProcessInfo(await this.#runtime.ask('show info')));
    }
    return this.#runtime;
  }

  /** Who has answered: the first time the reading begins with it. */
  #meet(own: ProcessInfo): void {
    if (this.#info !== undefined) {
      if (own.id !== this.#info.id) throw anotherWorker();
      return;
    }
    const { due, ledger, wanted, kinds, isAnyone } = this.#options;
    if (own.stopping && !isAnyone) throw anotherWorker();
    this.#info = own;
    due.begin(own.id, kinds);
    this.#taking = ledger.current(own, wanted, ({ kind, listener, source, values, status }, differs) => {
      if (kind === 'listener') due.listener(listener, source, differs, (values[OPEN] as number) > 0);
      else due.pool(listener, differs, status === 'UP');
    });
  }

  #take(row: StatRow): void {
    this.#count++;
    this.#taking?.row(row);
  }
}

/** While one takes the place of another both answer at the admin socket. */
function anotherWorker(): HeadgateError {
  return new HeadgateError('RUNTIME_CLOSED', 'Another worker has taken over', { retry: 'now' });
}
