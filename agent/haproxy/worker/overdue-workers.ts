// Ends replaced workers that outlive `hard-stop-after`: HAProxy ends them by a timer of their own, which a worker that hangs
// does not reach.

import { runsWith } from '../../host/daemon/find.ts';
import type { Log } from '../../host/log.ts';
import type { HaproxyPaths } from '../paths.ts';
import { showProc } from '../socket/master.ts';

export interface OverdueWorkersOptions {
  readonly paths: Pick<HaproxyPaths, 'config' | 'masterSocket'>;
  /** Milliseconds. */
  readonly hardStopAfter: () => number;
  readonly log: Log;
  /** Milliseconds that never go back. */
  readonly now: () => number;
}

/** A worker ends a moment after its time. */
const MARGIN_MS = 5_000;

export class OverdueWorkers {
  readonly #options: OverdueWorkersOptions;
  /** When a worker was first seen as replaced, by pid. */
  #since: ReadonlyMap<number, number> = new Map();

  constructor(options: OverdueWorkersOptions) {
    this.#options = options;
  }

  /** Errors: those of showProc(). */
  async end(): Promise<void> {
    const { paths, hardStopAfter, log, now } = this.#options;
    const { oldWorkers } = await showProc(paths.masterSocket);
    this.#since = new Map(oldWorkers.map(({ pid }) => [pid, this.#since.get(pid) ?? now()]));
    for (const [pid, since] of this.#since) {
      if (now() - since < hardStopAfter() + MARGIN_MS || !(await runsWith(pid, paths.config))) continue;
      log.warn('Ended a replaced HAProxy worker that did not end in time', { worker: pid });
      process.kill(pid, 'SIGKILL');
    }
  }
}
