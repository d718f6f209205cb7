// Follows the lines that a HAProxy worker writes for the agent into its ring `headgate:errors`, on a connection of its own to
// this worker. Owns the socket. A worker without the ring, or of another process, ends the connection.

import { connect, type Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { HaproxyPaths } from '../paths.ts';

export interface ErrorStreamOptions {
  readonly paths: Pick<HaproxyPaths, 'adminSocket' | 'masterSocket'>;
  readonly worker: BootedWorker;
  readonly onLine: (line: string) => void;
  /** Called once, not after close(). */
  readonly onEnd: () => void;
  readonly clock: Clock;
}

const RING = 'headgate:errors';
const MAX_LINE_LENGTH = 16_384;
/** A part of the stream with more lines than this is followed by a rest: HAProxy drops what the agent does not read. */
const MANY_LINES = 200;
const REST_MS = 50;

export class ErrorStream {
  readonly #options: ErrorStreamOptions;
  readonly #socket: Socket;
  #tail = '';
  #isOpen = false;
  #isClosed = false;

  constructor(options: ErrorStreamOptions) {
    this.#options = options;
    const { paths, worker } = options;
    const { pid, via } = worker.runtime.worker;
    const events = `show events ${RING} -w -n`;
    const isByMaster = via === 'master';
    this.#isOpen = isByMaster;
    this.#socket = connect(isByMaster ? paths.masterSocket : paths.adminSocket).setEncoding('utf8');
    this.#socket.unref();
    this.#socket.once('connect', () => {
      this.#socket.write(isByMaster ? `@!${pid} ${events}\n` : `show info;${events}\n`);
    });
    this.#socket.on('data', (chunk: string) => this.#receive(chunk));
    this.#socket.on('error', () => this.#end());
    this.#socket.on('close', () => this.#end());
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  #receive(chunk: string): void {
    const lines = `${this.#tail}${chunk}`.split('\n');
    this.#tail = (lines.pop() ?? '').slice(0, MAX_LINE_LENGTH);
    for (const line of lines) {
      if (this.#isClosed) return;
      if (this.#isOpen) this.#options.onLine(line);
      else this.#begin(line);
    }
    if (lines.length <= MANY_LINES) return;
    this.#socket.pause();
    this.#options.clock.after(REST_MS, () => this.#socket.resume());
  }

  /** The lines of `show info`, which end with an empty one. */
  #begin(line: string): void {
    const [, pid] = /^Pid: (\d+)$/.exec(line) ?? [];
    if (pid !== undefined && Number(pid) !== this.#options.worker.runtime.worker.pid) this.#end();
    if (line !== '') return;
    this.#isOpen = true;
  }

  #end(): void {
    if (this.#isClosed) return;
    this.close();
    this.#options.onEnd();
  }
}
