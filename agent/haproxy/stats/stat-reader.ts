// Asks the worker that takes connections for its statistics, on a connection of its own, and gives them as they come.
// Takes what HAProxy says in portions: while it writes without having to wait, the connections of that thread wait, and
// with 2.6 and 3.0 no server can be added or removed (both stop all threads), so it is made to wait every now and then
// (docs/benchmarks.md).

import { connect } from 'node:net';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { type StatRow, StatRows } from './stat-rows.ts';

/**
 * Bytes taken at a time: about what the kernel holds for a unix socket. In the pause after them HAProxy fills it again, 2.7
 * ms of its work, finds it full, and looks at its connections; where less is taken more often it never finds it full.
 */
const PORTION = 192 * 1024;
/** Bytes of one read; one piece of memory for all of them. */
const READ = 64 * 1024;
/** Milliseconds between two portions. */
const PAUSE = 4;

export interface StatReading {
  /** The text of `show info`, told before any row. */
  readonly onInfo: (text: string) => void;
  readonly onRow: (row: StatRow) => void;
  /** Commands `show stat`, behind one another. */
  readonly commands: string;
  /** For all of it. */
  readonly timeoutMs: number;
}

/** Errors: RUNTIME_CONNECT, RUNTIME_CLOSED, RUNTIME_TIMEOUT, RUNTIME_REPLY. */
export function readStatistics(socketPath: string, reading: StatReading): Promise<void> {
  return new Promise((resolve, reject) => {
    const onread = { buffer: Buffer.allocUnsafeSlow(READ), callback: (length: number) => take(length) };
    const socket = connect({ path: socketPath, onread });
    const answer = new StatAnswer(reading);
    let isConnected = false;
    let portion = 0;
    let resuming: NodeJS.Timeout | undefined;
    const finish = (error?: HeadgateError): void => {
      clearTimeout(timer);
      clearTimeout(resuming);
      socket.destroy();
      if (error === undefined) resolve();
      else reject(error);
    };
    const timer = setTimeout(() => {
      const message = `HAProxy does not tell its statistics within ${reading.timeoutMs} ms`;
      finish(new HeadgateError('RUNTIME_TIMEOUT', message, { retry: 'later' }));
    }, reading.timeoutMs);
    const guarded = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        finish(error instanceof HeadgateError ? error : new HeadgateError('RUNTIME_REPLY', messageOf(error)));
      }
    };
    socket.once('connect', () => {
      isConnected = true;
      socket.write(`show info;${reading.commands}\n`);
    });
    const take = (length: number): boolean => {
      guarded(() => answer.feed(onread.buffer.subarray(0, length)));
      portion += length;
      if (portion < PORTION || socket.destroyed) return true;
      portion = 0;
      resuming = setTimeout(() => socket.resume(), PAUSE);
      return false;
    };
    socket.once('end', () =>
      guarded(() => {
        answer.end();
        finish();
      }),
    );
    socket.once('error', (cause) => {
      const code = isConnected ? 'RUNTIME_CLOSED' : 'RUNTIME_CONNECT';
      finish(new HeadgateError(code, 'Cannot read the statistics of HAProxy', { retry: 'later', cause }));
    });
  });
}

/** The text of `show info`, an empty line, the rows of each `show stat` with an empty line behind them. */
export class StatAnswer {
  readonly #reading: Pick<StatReading, 'onInfo' | 'onRow'>;
  readonly #rows: StatRows;
  #info: Buffer | undefined = Buffer.alloc(0);

  constructor(reading: Pick<StatReading, 'onInfo' | 'onRow'>) {
    this.#reading = reading;
    this.#rows = new StatRows(reading.onRow);
  }

  /** Keeps nothing of the memory that it is given. */
  feed(chunk: Buffer): void {
    if (this.#info === undefined) {
      this.#rows.feed(chunk);
      return;
    }
    const bytes = Buffer.concat([this.#info, chunk]);
    const end = bytes.indexOf('\n\n');
    if (end === -1) {
      this.#info = bytes;
      return;
    }
    this.#info = undefined;
    this.#reading.onInfo(bytes.toString('latin1', 0, end));
    this.#rows.feed(bytes.subarray(end + 2));
  }

  end(): void {
    if (this.#info !== undefined)
      throw new HeadgateError('RUNTIME_REPLY', "Cannot read HAProxy's statistics: the answer broke off");
    this.#rows.end();
  }
}
