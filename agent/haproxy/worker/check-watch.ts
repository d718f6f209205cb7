// Reads what HAProxy's checks have found, listener after listener, and says where that has changed. Behind everything
// urgent, in slices, and only of listeners with a monitor: without one it does nothing.

import { messageOf } from '../../base/errors.ts';
import { Slice } from '../../base/slice.ts';
import type { Log } from '../../host/log.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { isForHaproxy } from '../config/listener-config.ts';
import { type CheckResult, parseCheckResults } from '../socket/check-results.ts';
import type { BootedWorker } from '../worker.ts';

export interface CheckWatchOptions {
  readonly worker: () => BootedWorker | undefined;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** Milliseconds between the end of one reading and the beginning of the next. */
  readonly interval: () => number;
  /** Keys of the load balancers of which a member has gone up or down. */
  readonly onChanged: (keys: readonly string[]) => void;
  readonly log: Log;
}

/** Questions that are asked at a time. */
const QUESTIONS = 64;
const NOTHING: ReadonlyMap<string, CheckResult> = new Map();

export class CheckWatch {
  readonly #options: CheckWatchOptions;
  /** Listeners with a monitor, by the key of their load balancer; those without have no entry. */
  readonly #monitored = new Map<string, readonly string[]>();
  /** By listener, then by member. */
  #results = new Map<string, ReadonlyMap<string, CheckResult>>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: CheckWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.changed(this.#options.wanted.keys());
    this.#timer = setTimeout(() => void this.#round(), Math.min(1_000, this.#options.interval()));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** The interval may be another one: nobody waits for the end of the old one. */
  retime(): void {
    if (this.#timer === undefined || this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#later();
  }

  #later(): void {
    this.#timer = setTimeout(() => void this.#round(), this.#options.interval());
  }

  /** These differ by now. Whatever has no monitor costs nothing from then on. */
  changed(keys: Iterable<string>): void {
    for (const key of keys) {
      const listeners = (this.#options.wanted.get(key)?.listeners ?? []).filter(isMonitored);
      if (listeners.length === 0) this.#monitored.delete(key);
      else
        this.#monitored.set(
          key,
          listeners.map(({ name }) => name),
        );
    }
  }

  /** What was read last of a listener's members, by name. */
  results(listener: string): ReadonlyMap<string, CheckResult> {
    return this.#results.get(listener) ?? NOTHING;
  }

  async #round(): Promise<void> {
    const { log } = this.#options;
    this.#timer = undefined;
    try {
      await this.#read();
    } catch (error) {
      // A lost connection says so itself.
      log.debug('Cannot read the results of health checks now', { error: messageOf(error) });
    }
    if (!this.#isClosed) this.#later();
  }

  async #read(): Promise<void> {
    const { worker, wanted, onChanged } = this.#options;
    const serving = worker();
    if (serving === undefined || (this.#monitored.size === 0 && this.#results.size === 0)) return;
    const slice = new Slice();
    const next = new Map<string, ReadonlyMap<string, CheckResult>>();
    const monitored: [listener: string, key: string][] = [];
    for (const [key, names] of this.#monitored) {
      // Gone while there was no worker.
      if (!wanted.has(key)) this.#monitored.delete(key);
      for (const name of names) monitored.push([name, key]);
      if (slice.isOver) await slice.breathe();
    }
    for (let at = 0; at < monitored.length; at += QUESTIONS) {
      const some = monitored.slice(at, at + QUESTIONS);
      const questions = some.map(([name]) => `show servers state ${name}`);
      const answers = await serving.runtime.askAll(questions, { lane: 'bulk' });
      const changed = new Set<string>();
      for (const [index, [name, key]] of some.entries()) {
        const results = parseCheckResults(answers[index] ?? '');
        next.set(name, results);
        const before = this.results(name);
        this.#results.set(name, results);
        if (!isSame(before, results)) changed.add(key);
        if (slice.isOver) await slice.breathe();
      }
      if (this.#isClosed) return;
      if (changed.size > 0) onChanged([...changed]);
    }
    this.#results = next;
  }
}

function isMonitored(listener: Listener): boolean {
  return listener.pool.monitor !== undefined && isForHaproxy(listener);
}

function isSame(a: ReadonlyMap<string, CheckResult>, b: ReadonlyMap<string, CheckResult>): boolean {
  if (a.size !== b.size) return false;
  for (const [name, { isDown, cause }] of a) {
    const other = b.get(name);
    if (other?.isDown !== isDown || other.cause !== cause) return false;
  }
  return true;
}
