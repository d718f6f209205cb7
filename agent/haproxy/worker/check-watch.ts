// Reads the results of HAProxy's health checks round by round and reports which load balancers changed. Reads only
// listeners with a health monitor, behind all urgent commands.

import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import { Slice } from '../../base/slice.ts';
import type { Log } from '../../host/log.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import type { BootedWorker } from '../booted-worker.ts';
import { readServers } from '../readback.ts';
import { type CheckResult, parseCheckResults } from '../socket/check-results.ts';

/** The last results by listener, then by member. */
export type CheckResults = Map<string, ReadonlyMap<string, CheckResult>>;

export interface CheckWatchOptions {
  /** The results of all watches, so that a listener which another watch reads from now on keeps its results until then. */
  readonly results: CheckResults;
  readonly worker: () => BootedWorker | undefined;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** Which of the listeners with a health monitor it reads. */
  readonly isRead: (listener: Listener) => boolean;
  /** Milliseconds from the end of one round to the next. */
  readonly interval: () => number;
  /** Keys of load balancers with a member that went up or down. */
  readonly onChanged: (keys: readonly string[]) => void;
  readonly log: Log;
}

const MAX_FIRST_DELAY_MS = 1_000;
const NO_RESULTS: ReadonlyMap<string, CheckResult> = new Map();

export class CheckWatch {
  readonly #options: CheckWatchOptions;
  readonly #rounds: Rounds;
  /** Names of listeners with a health monitor, by the key of their load balancer. */
  readonly #monitored = new Map<string, readonly string[]>();
  /** The listeners whose results it has read. */
  #read = new Set<string>();
  #isFirst = true;
  #isClosed = false;

  constructor(options: CheckWatchOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => Math.min(options.interval(), this.#isFirst ? MAX_FIRST_DELAY_MS : Infinity),
      work: () => this.#round(),
      // A lost connection is reported by the active worker.
      onFailed: (error) =>
        options.log.debug('Cannot read the results of health checks now', { error: messageOf(error) }),
    });
  }

  start(): void {
    this.changed(this.#options.desired.keys());
    this.#rounds.start();
  }

  close(): void {
    this.#isClosed = true;
    this.#rounds.close();
  }

  /** The interval has changed. */
  retime(): void {
    this.#rounds.retime();
  }

  /** These load balancers have changed. */
  changed(keys: Iterable<string>): void {
    const { desired, isRead } = this.#options;
    for (const key of keys) {
      const listeners = desired.get(key)?.listeners ?? [];
      const names = listeners
        .filter((listener) => listener.pool.monitor !== undefined && isRead(listener))
        .map(({ name }) => name);
      if (names.length === 0) this.#monitored.delete(key);
      else this.#monitored.set(key, names);
    }
  }

  async #round(): Promise<void> {
    this.#isFirst = false;
    const { worker, desired, results, onChanged } = this.#options;
    const serving = worker();
    if (serving === undefined || (this.#monitored.size === 0 && this.#read.size === 0)) return;
    const slice = new Slice();
    const listeners: string[] = [];
    for (const [key, names] of this.#monitored) {
      // A load balancer that was removed while there was no worker.
      if (!desired.has(key)) this.#monitored.delete(key);
      listeners.push(...names);
      if (slice.isOver) await slice.breathe();
    }
    const read = new Set<string>();
    const changed = new Set<string>();
    const report = (): void => {
      if (changed.size > 0 && !this.#isClosed) onChanged([...changed]);
      changed.clear();
    };
    const take = (name: string, answer: string): void => {
      const found = parseCheckResults(answer);
      if (!isSame(results.get(name) ?? NO_RESULTS, found)) changed.add(ownerOfListener(name));
      results.set(name, found);
      read.add(name);
    };
    await readServers(serving.runtime, listeners, take, report);
    for (const name of this.#read)
      if (read.has(name)) continue;
      else if (this.#isMonitored(name)) read.add(name);
      else results.delete(name);
    this.#read = read;
  }

  #isMonitored(name: string): boolean {
    const listeners = this.#options.desired.get(ownerOfListener(name))?.listeners ?? [];
    return listeners.some((listener) => listener.name === name && listener.pool.monitor !== undefined);
  }
}

function isSame(a: ReadonlyMap<string, CheckResult>, b: ReadonlyMap<string, CheckResult>): boolean {
  if (a.size !== b.size) return false;
  for (const [name, { isDown, cause }] of a) {
    const other = b.get(name);
    if (other?.isDown !== isDown || other.cause !== cause) return false;
  }
  return true;
}
