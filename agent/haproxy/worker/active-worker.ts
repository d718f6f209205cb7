// Tracks the active HAProxy worker, the one that gets commands: finds or starts it, switches to its replacement after
// a reload, and looks for another if it is lost. What the new worker lacks is planned again.

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { listenerOfBackend, ownerOfListener } from '../../model/names.ts';
import type { AclIds } from '../config/acl-ids.ts';
import { GRACE_MS } from '../config/grace.ts';
import type { Persister } from '../config/persister.ts';
import type { Quarantine } from '../config/quarantine.ts';
import type { HaproxySettings } from '../settings.ts';
import type { Command } from '../socket/commands.ts';
import type { Statistics } from '../stats/statistics.ts';
import type { BootedWorker } from '../worker.ts';
import { OldWorkers } from './old-workers.ts';
import { Reaper } from './reaper.ts';
import type { Supervisor } from './supervisor.ts';
import { handOnTables } from './table-sync.ts';

export interface ActiveWorkerOptions {
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

/** A worker that ends during a reload is expected to be replaced within this time. */
const REPLACEMENT_DELAY_MS = 500;
/** The absence of a worker is reported after this time; one that is back before was hardly away. */
const ABSENCE_MS = 1_000;
/** For a worker that booted from a file that is not the agent's. */
const UNKNOWN_CONNECT_TIMEOUT_MS = 1_000;

export class ActiveWorker {
  readonly #options: ActiveWorkerOptions;
  readonly #oldWorkers: OldWorkers;
  #worker: BootedWorker | undefined;
  #reaper: Reaper | undefined;
  /** The worker that was replaced last, and until when it may take connections as well. */
  #draining: { readonly worker: BootedWorker; readonly until: number } | undefined;
  /** Keys whose commands a worker that is being replaced has refused: planned again after the reload. */
  readonly #afterReload = new Set<string>();
  /** Keys that were planned while a reload is under way: what its worker lacks is among them. */
  readonly #changedMeanwhile = new Set<string>();
  /** Set while an answer of the worker is waited for. */
  #onReplaced: (() => void) | undefined;
  /** The global part has changed while a worker that had booted, or was booting, was not yet taken. */
  #isGlobalLate = false;
  #isObtaining = false;
  #isAway = false;
  #hasServed = false;
  #closed = false;

  constructor(options: ActiveWorkerOptions) {
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
  get worker(): BootedWorker | undefined {
    return this.#worker;
  }

  /** The worker that was replaced, while it may still take connections: it gets the same changes. */
  get draining(): BootedWorker | undefined {
    if (this.#draining !== undefined && performance.now() > this.#draining.until) this.#draining = undefined;
    return this.#draining?.worker;
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
    setTimeout(() => this.#miss(), ABSENCE_MS).unref();
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
  take(next: BootedWorker): void {
    const { persister, requestReload, onKnown } = this.#options;
    const old = this.#worker;
    if (this.#closed || old?.runtime.worker.pid === next.runtime.worker.pid) {
      next.runtime.close();
      return;
    }
    this.#worker = next;
    this.#onReplaced?.();
    this.#isAway = false;
    this.#hasServed = true;
    this.#reaper?.close();
    this.#reaper = this.#reaperOf(next);
    this.#oldWorkers.replaced(next, old);
    if (old !== undefined) this.#drain(old);
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
  lose(worker: BootedWorker, why: string): void {
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
    if (isReloading()) setTimeout(obtain, REPLACEMENT_DELAY_MS);
    else obtain();
  }

  /** Something stands in the global part that the worker may not have. */
  globalChanged(): void {
    if (this.#worker === undefined) this.#isGlobalLate = true;
    else this.#options.requestReload('settings');
  }

  /** Takes note of what `worker` has acknowledged: members that are out of use are ended in it and in older ones. */
  acknowledged(worker: BootedWorker, commands: readonly Command[]): void {
    if (worker === this.#worker) this.#reaper?.watch(commands);
    this.#oldWorkers.watch(commands);
  }

  /** A reload is under way, and these are planned. */
  changedMeanwhile(keys: Iterable<string>): void {
    for (const key of keys) this.#changedMeanwhile.add(key);
  }

  /** What `answer` gives, or undefined if the worker is replaced before; for one answer at a time. */
  async unlessReplaced<T>(answer: Promise<T>): Promise<T | undefined> {
    const { promise: replaced, resolve } = Promise.withResolvers<undefined>();
    this.#onReplaced = () => resolve(undefined);
    try {
      return await Promise.race([answer, replaced]);
    } finally {
      this.#onReplaced = undefined;
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

  #drain(old: BootedWorker): void {
    // It was told to stop some milliseconds ago, and its timer may be late.
    this.#draining = { worker: old, until: performance.now() + GRACE_MS };
    void handOnTables(old);
    this.#options.statistics.retire(old.runtime);
  }

  /** Nothing can be planned without a worker, but all is told of anew: what was served no longer counts as served. */
  #miss(): void {
    if (this.#worker !== undefined || this.#closed || this.#isAway) return;
    this.#isAway = true;
    if (this.#hasServed) this.#options.replan(this.#options.wanted.keys());
  }

  #reaperOf(worker: BootedWorker): Reaper {
    const { settings, log } = this.#options;
    return new Reaper(worker, {
      drainTimeout: () => settings().drainTimeout,
      connectTimeout: (backend) => connectTimeout(backend, worker.booted),
      onDeleted: (count) => log.debug('Deleted servers that were out of use', { count }),
      onError: (error) => log.debug('Stopped deleting servers', { error }),
    });
  }

  /** What changed during the reload has waited for this moment, and is told before all others are looked at. */
  #replanSoon(next: BootedWorker, old: BootedWorker): void {
    this.#options.replan([...this.#changedMeanwhile]);
    setImmediate(() => {
      if (this.#closed) return;
      this.#replan(next, old);
      this.#releaseAcls(next, old);
    });
  }

  #replan(next: BootedWorker, old: BootedWorker | undefined): void {
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
  #releaseAcls(next: BootedWorker, old: BootedWorker): void {
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
function connectTimeout(backend: string, booted: BootedWorker['booted']): number {
  const name = listenerOfBackend(backend);
  const listener = booted.get(ownerOfListener(name))?.listeners.find((each) => each.name === name);
  return listener?.pool.timeouts.connect ?? UNKNOWN_CONNECT_TIMEOUT_MS;
}
