// The HAProxy worker that counts: gets hold of one, puts its successor in its place after a reload, and looks for
// another where it is lost. Whoever leaves is followed to its end; what the next one lacks is planned again.

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { listenerOfBackend, ownerOfListener } from '../../model/names.ts';
import type { AclIds } from '../config/acl-ids.ts';
import { OVERLAP } from '../config/grace.ts';
import type { Persister } from '../config/persister.ts';
import type { Quarantine } from '../config/quarantine.ts';
import type { HaproxySettings } from '../options.ts';
import type { Command } from '../socket/commands.ts';
import type { Statistics } from '../stats/statistics.ts';
import type { ServingWorker } from '../worker.ts';
import { OldWorkers } from './old-workers.ts';
import { Reaper } from './reaper.ts';
import type { Supervisor } from './supervisor.ts';
import { handOnTables } from './table-sync.ts';

export interface ServingOptions {
  readonly masterSocket: string;
  readonly settings: () => Pick<HaproxySettings, 'haproxySupervisor' | 'drainTimeout' | 'hardStopAfter'>;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  readonly supervisor: Supervisor;
  readonly persister: Persister;
  readonly quarantine: Quarantine;
  readonly statistics: Statistics;
  readonly aclIds: AclIds;
  readonly isReloading: () => boolean;
  readonly requestReload: (cause: 'adopted' | 'settings') => void;
  readonly replan: (keys: Iterable<string>) => void;
  /** As of HaproxyOptions. */
  readonly onKnown: () => void;
  readonly log: Log;
}

/** Milliseconds in which a worker that ends during a reload is expected to be followed by another. */
const SUCCESSION = 500;
/** Milliseconds after which the absence of a worker is told of; one that is back before was hardly away. */
const ABSENCE = 1_000;
/** Milliseconds to connect, where a worker booted from another file than ours. */
const UNKNOWN_CONNECT = 1_000;

export class Serving {
  readonly #options: ServingOptions;
  readonly #oldWorkers: OldWorkers;
  #worker: ServingWorker | undefined;
  #reaper: Reaper | undefined;
  /** The one before, and until when it may take connections as well. */
  #leaving: { readonly worker: ServingWorker; readonly until: number } | undefined;
  /** Keys of what a worker that is being replaced has refused: planned again by whoever serves after the reload. */
  readonly #afterReload = new Set<string>();
  /** Keys of what was planned while a reload is under way: what its worker lacks is among them. */
  readonly #changedMeanwhile = new Set<string>();
  /** Somebody waits for the worker's answer. */
  #onSucceeded: (() => void) | undefined;
  /** The global part has changed while a worker that had booted, or was booting, was not yet taken. */
  #isGlobalLate = false;
  #isObtaining = false;
  #isAway = false;
  #hasServed = false;
  #closed = false;

  constructor(options: ServingOptions) {
    const { masterSocket, settings, log } = options;
    this.#options = options;
    this.#oldWorkers = new OldWorkers({
      masterSocket,
      drainTimeout: () => settings().drainTimeout,
      hardStopAfter: () => settings().hardStopAfter,
      onEnded: (sessions) => log.info('Ended connections of old workers to removed members', { sessions }),
      onError: (error) => log.debug('Cannot look after old workers now', { error }),
    });
  }

  /** undefined while there is none. */
  get worker(): ServingWorker | undefined {
    return this.#worker;
  }

  /** The worker that was replaced, while it may still take connections: it is told what changes, too. */
  get leaving(): ServingWorker | undefined {
    if (this.#leaving !== undefined && performance.now() > this.#leaving.until) this.#leaving = undefined;
    return this.#leaving?.worker;
  }

  /** One has been looked for in vain for a second. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** Members that are out of use, and still to be deleted from it. */
  get serversToDelete(): number {
    return this.#reaper?.waiting ?? 0;
  }

  /** Returns once there is a worker, or the first attempt to get one has failed. One at a time. */
  obtain(): Promise<void> {
    if (this.#isObtaining) return Promise.resolve();
    this.#isObtaining = true;
    setTimeout(() => this.#miss(), ABSENCE).unref();
    const { supervisor, persister, settings } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onAttempt = async (): Promise<void> => {
      // Someone else starts HAProxy: it shall find a file to start from.
      if (settings().haproxySupervisor === 'external') await persister.now();
      resolve();
    };
    const run = async (): Promise<void> => {
      const worker = await supervisor.obtain(onAttempt);
      this.#isObtaining = false;
      if (worker !== undefined) this.take(worker);
      resolve();
    };
    void run();
    return promise;
  }

  /** From now on this worker is the one that counts. */
  take(next: ServingWorker): void {
    const { persister, requestReload, onKnown } = this.#options;
    const old = this.#worker;
    if (this.#closed || old?.runtime.worker.pid === next.runtime.worker.pid) {
      next.runtime.close();
      return;
    }
    this.#worker = next;
    this.#onSucceeded?.();
    this.#isAway = false;
    this.#hasServed = true;
    this.#reaper?.close();
    this.#reaper = this.#reaperOf(next);
    this.#oldWorkers.succeed(next, old);
    if (old !== undefined) this.#leave(old);
    void next.runtime.closed.then((error) => this.lose(next, messageOf(error)));
    if (next.structure === '') requestReload('adopted');
    if (this.#isGlobalLate) requestReload('settings');
    this.#isGlobalLate = false;
    persister.catchUp();
    if (old === undefined) this.#replan(next, old);
    else this.#replanSoon(next, old);
    if (next.structure !== '' && (old?.structure ?? '') === '') onKnown();
  }

  /** This worker is gone, or serves no more: another is looked for, unless a reload is about to bring it. */
  lose(worker: ServingWorker, why: string): void {
    if (worker !== this.#worker || this.#closed) return;
    const { statistics, supervisor, isReloading, log } = this.#options;
    this.#worker = undefined;
    statistics.retire(worker.runtime);
    const obtain = (): void => {
      if (this.#worker !== undefined || this.#closed) return;
      log.warn('Lost the HAProxy worker', { why });
      supervisor.lose(why);
      void this.obtain();
    };
    // A worker without connections ends as soon as its successor is there: the reload is about to bring that one.
    if (isReloading()) setTimeout(obtain, SUCCESSION);
    else obtain();
  }

  /** Something stands in the global part that the worker may not have. */
  globalChanged(): void {
    if (this.#worker === undefined) this.#isGlobalLate = true;
    else this.#options.requestReload('settings');
  }

  /** Takes note of what `worker` has acknowledged: members that are out of use are ended in it and in older ones. */
  acknowledged(worker: ServingWorker, commands: readonly Command[]): void {
    if (worker === this.#worker) this.#reaper?.watch(commands);
    this.#oldWorkers.watch(commands);
  }

  /** A reload is under way, and these are planned. */
  changedMeanwhile(keys: Iterable<string>): void {
    for (const key of keys) this.#changedMeanwhile.add(key);
  }

  /** What `answer` gives, or undefined where another worker serves before; for one at a time. */
  async orSucceeded<T>(answer: Promise<T>): Promise<T | undefined> {
    const { promise: succeeded, resolve } = Promise.withResolvers<undefined>();
    this.#onSucceeded = () => resolve(undefined);
    try {
      return await Promise.race([answer, succeeded]);
    } finally {
      this.#onSucceeded = undefined;
    }
  }

  /** These are planned again once the reload that is under way has come to an end. */
  planAfterReload(keys: Iterable<string>): void {
    for (const key of keys) this.#afterReload.add(key);
  }

  /** A reload has come to an end, whatever has become of it. */
  reloadEnded(): void {
    this.#options.replan([...this.#afterReload]);
    this.#afterReload.clear();
    this.#changedMeanwhile.clear();
    if (this.#worker === undefined) void this.obtain();
  }

  close(): void {
    this.#closed = true;
    this.#reaper?.close();
    this.#oldWorkers.close();
  }

  #leave(old: ServingWorker): void {
    // It was told to stop some milliseconds ago, and its timer may be late.
    this.#leaving = { worker: old, until: performance.now() + OVERLAP };
    void handOnTables(old);
    this.#options.statistics.retire(old.runtime);
  }

  /** Nothing can be planned without a worker, but all is told of anew: what was served no longer counts as served. */
  #miss(): void {
    if (this.#worker !== undefined || this.#closed || this.#isAway) return;
    this.#isAway = true;
    if (this.#hasServed) this.#options.replan(this.#options.wanted.keys());
  }

  #reaperOf(worker: ServingWorker): Reaper {
    const { settings, log } = this.#options;
    return new Reaper(worker, {
      drainTimeout: () => settings().drainTimeout,
      connectTimeout: (backend) => connectTimeout(backend, worker.booted),
      onDeleted: (count) => log.debug('Deleted servers that were out of use', { count }),
      onError: (error) => log.debug('Stopped deleting servers', { error }),
    });
  }

  /** What changed during the reload has waited for this moment, and is told before all others are looked at. */
  #replanSoon(next: ServingWorker, old: ServingWorker): void {
    this.#options.replan([...this.#changedMeanwhile]);
    setImmediate(() => {
      if (this.#closed) return;
      this.#replan(next, old);
      this.#releaseAcls(next, old);
    });
  }

  #replan(next: ServingWorker, old: ServingWorker | undefined): void {
    const { wanted, quarantine, replan } = this.#options;
    // What an adopted worker runs may differ everywhere from the file it booted from; one that we booted differs only
    // in what has changed since.
    const isBehind = (each: LoadBalancer): boolean =>
      next.booted.get(each.key) !== quarantine.effective(each);
    // Nothing is left to do for these, but perhaps to be told: what was out of service is served now.
    const isNew = ({ key }: LoadBalancer): boolean => next.booted.get(key) !== old?.booted.get(key);
    if (old === undefined) replan(wanted.keys());
    else replan([...wanted.values()].filter((each) => isBehind(each) || isNew(each)).map(({ key }) => key));
    // Gone from the worker, or still to go from it.
    const others = new Set([...next.booted.keys(), ...(old?.booted.keys() ?? [])]);
    replan([...others].filter((key) => !wanted.has(key)));
  }

  /** Of listeners that neither the worker has any more nor anybody wants. */
  #releaseAcls(next: ServingWorker, old: ServingWorker): void {
    const { wanted, aclIds } = this.#options;
    for (const [key, before] of old.booted) {
      const after = next.booted.get(key);
      if (after === before) continue;
      const still = new Set(
        [after, wanted.get(key)].flatMap((each) => each?.listeners ?? []).map(({ name }) => name),
      );
      for (const { name } of before.listeners) if (!still.has(name)) aclIds.release(name);
    }
  }
}

/** As in the file that the worker booted from. */
function connectTimeout(backend: string, booted: ServingWorker['booted']): number {
  const name = listenerOfBackend(backend);
  const listener = booted.get(ownerOfListener(name))?.listeners.find((each) => each.name === name);
  return listener?.pool.timeouts.connect ?? UNKNOWN_CONNECT;
}
