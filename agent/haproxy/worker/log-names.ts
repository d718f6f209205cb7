// Gives the active worker the names in its connection log: the pods and nodes behind members, which HAProxy knows by address
// only, and words for how a connection ended. The names are a map in its memory, so that HAProxy needs no file.

import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { BootedWorker } from '../booted-worker.ts';
import { ENDINGS, LOG_NAMES, memberNames } from '../config/log-names.ts';
import type { Command } from '../socket/commands.ts';

export interface LogNamesOptions {
  readonly worker: () => BootedWorker | undefined;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly log: Log;
  readonly clock?: Clock;
}

/** A new worker has no names until then, unless a plan comes before. */
const LOOK_INTERVAL_MS = 1_000;
/** The names of members that are gone stay, because their last connections are not logged yet; this many at most. */
const MAX_STALE = 10_000;

/** An earlier agent may have filled the map. */
const FIRST: readonly Command[] = [
  { kind: 'ClearMap', map: LOG_NAMES },
  ...ENDINGS.map(([key, value]): Command => ({ kind: 'AddMapEntry', map: LOG_NAMES, key, value })),
];

export class LogNames {
  readonly #options: LogNamesOptions;
  readonly #rounds: Rounds;
  /** The worker that has the names. */
  #worker: BootedWorker | undefined;
  /** Until the next worker, because a log is part of the file. */
  #isLogging = false;
  /** By key of the map. */
  readonly #known = new Map<string, string>();
  /** How many of them each load balancer needs, and all together. */
  readonly #needs = new Map<string, number>();
  #needed = 0;

  constructor(options: LogNamesOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => LOOK_INTERVAL_MS,
      work: () => this.changed([]),
      onFailed: (error) => this.#failed(error),
      clock: options.clock ?? systemClock,
    });
  }

  /** A listener of the worker has a connection log. */
  get isLogging(): boolean {
    return this.#isLogging;
  }

  start(): void {
    this.#rounds.start();
  }

  /** Sends the names of these load balancers that the worker lacks; all names to a new worker. Waits for no reply. */
  changed(keys: Iterable<string>): void {
    const worker = this.#options.worker();
    if (worker === undefined) return;
    const isAll = worker !== this.#worker || this.#known.size - this.#needed > MAX_STALE;
    if (isAll) this.#begin(worker);
    if (!this.#isLogging) return;
    const missing = [...(isAll ? this.#options.desired.keys() : keys)].flatMap((key) => this.#missing(key));
    const commands = isAll ? [...FIRST, ...missing] : missing;
    if (commands.length > 0)
      worker.runtime.send(commands, { lane: 'bulk' }).catch((error) => this.#failed(error));
  }

  close(): void {
    this.#rounds.close();
  }

  #begin(worker: BootedWorker): void {
    this.#worker = worker;
    const listeners = [...worker.booted.values()].flatMap((each) => each.listeners);
    this.#isLogging = listeners.some(({ log }) => log !== 'none');
    this.#known.clear();
    this.#needs.clear();
    this.#needed = 0;
  }

  #missing(key: string): readonly Command[] {
    const names = this.#options.desired.get(key)?.listeners.flatMap(memberNames) ?? [];
    this.#needed += names.length - (this.#needs.get(key) ?? 0);
    if (names.length === 0) this.#needs.delete(key);
    else this.#needs.set(key, names.length);
    return names.flatMap(([entry, name]): readonly Command[] => {
      const known = this.#known.get(entry);
      if (known === name) return [];
      this.#known.set(entry, name);
      const kind = known === undefined ? 'AddMapEntry' : 'SetMapEntry';
      return [{ kind, map: LOG_NAMES, key: entry, value: name }];
    });
  }

  /** The worker is being replaced, or did not answer: the next one gets all names. */
  #failed(error: unknown): void {
    this.#options.log.debug('Cannot send the names of members for the connection log', {
      error: messageOf(error),
    });
  }
}
