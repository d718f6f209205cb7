// Warns while a connection log is written to a socket that does not exist, because HAProxy loses such lines without a count.

import { statSync } from 'node:fs';
import { type Clock, systemClock } from '../../base/clock.ts';
import { Fault } from '../../base/fault.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Log } from '../../host/log.ts';

export interface LogTargetWatchOptions {
  /** '' if the log goes elsewhere. */
  readonly socket: string;
  /** A listener of the active worker has a connection log. */
  readonly isLogging: () => boolean;
  readonly log: Log;
  readonly clock?: Clock;
}

const LOOK_INTERVAL_MS = 5_000;

export class LogTargetWatch {
  readonly #options: LogTargetWatchOptions;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();

  constructor(options: LogTargetWatchOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => LOOK_INTERVAL_MS,
      work: () => this.#look(),
      // The agent may not see it.
      onFailed: () => undefined,
      clock: options.clock ?? systemClock,
    });
  }

  start(): void {
    if (this.#options.socket !== '') this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  #look(): void {
    const { socket, isLogging, log } = this.#options;
    if (!isLogging()) return;
    const isThere = statSync(socket, { throwIfNoEntry: false }) !== undefined;
    if (!isThere && this.#fault.set('missing'))
      log.warn('HAProxy loses the connection log: start its receiver, or set "connectionLogTarget"', {
        error: 'The socket does not exist',
        socket,
      });
    if (isThere && this.#fault.clear()) log.info('The connection log has its socket again', { socket });
  }
}
