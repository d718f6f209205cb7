// Keeps the agent connected to the lines about errors of the active worker, and gives them to the ejector.

import { systemClock } from '../../base/clock.ts';
import { Rounds } from '../../base/rounds.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { HaproxyPaths } from '../paths.ts';
import type { Ejector } from './ejector.ts';
import { ErrorStream } from './error-stream.ts';

export interface ErrorWatchOptions {
  readonly paths: Pick<HaproxyPaths, 'adminSocket' | 'masterSocket'>;
  /** The active one. */
  readonly worker: () => BootedWorker | undefined;
  readonly ejector: Ejector;
  /** The keys of all load balancers. */
  readonly keys: () => Iterable<string>;
}

/** For a worker that has no ring yet, and for connections that break. */
const LOOK_INTERVAL_MS = 1_000;

export class ErrorWatch {
  readonly #options: ErrorWatchOptions;
  readonly #rounds: Rounds;
  #worker: BootedWorker | undefined;
  #stream: ErrorStream | undefined;

  constructor(options: ErrorWatchOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => LOOK_INTERVAL_MS,
      work: () => this.look(),
      onFailed: () => undefined,
    });
  }

  start(): void {
    this.#options.ejector.changed(this.#options.keys());
    this.#rounds.start();
  }

  /** There may be another worker. */
  look(): void {
    const { worker, ejector, paths } = this.#options;
    const active = worker();
    if (active !== this.#worker) {
      this.#stream?.close();
      this.#stream = undefined;
      this.#worker = active;
      ejector.serve(active);
    }
    if (active === undefined || this.#stream !== undefined || !ejector.isNeeded) return;
    const stream: ErrorStream = new ErrorStream({
      paths,
      worker: active,
      clock: systemClock,
      onLine: (line) => ejector.line(line),
      onEnd: () => {
        if (this.#stream === stream) this.#stream = undefined;
      },
    });
    this.#stream = stream;
  }

  async close(): Promise<void> {
    this.#rounds.close();
    this.#stream?.close();
    await this.#options.ejector.close();
  }
}
