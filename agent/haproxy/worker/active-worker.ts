// Tracks the active HAProxy worker, the one that gets commands: finds or starts it, switches to its replacement after
// a reload, and looks for another if it is lost. What the new worker lacks is planned again.

import { type Clock, systemClock } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { listenerOfBackend, ownerOfListener } from '../../model/names.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { AclIds } from '../config/acl-ids.ts';
import type { ConfigParts } from '../config/config-parts.ts';
import { GRACE_MS } from '../config/render-context.ts';
import type { HaproxySettings } from '../settings.ts';
import type { Command } from '../socket/commands.ts';
import type { Statistics } from '../stats/statistics.ts';
import { OldWorkers } from './old-workers.ts';
import { Reaper } from './reaper.ts';
import type { Supervisor } from './supervisor.ts';
import { keepAwakeForTables } from './table-sync.ts';

export interface ActiveWorkerOptions {
  readonly masterSocket: string;
  readonly settings: () => Pick<HaproxySettings, 'haproxySupervisor' | 'drainTimeout' | 'hardStopAfter'>;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly supervisor: Supervisor;
  readonly config: Pick<ConfigParts, 'persister' | 'quarantine'> & { readonly aclIds: AclIds };
  readonly statistics: Statistics;
  readonly hooks: ActiveWorkerHooks;
  readonly log: Log;
}

export interface ActiveWorkerHooks {
  /** Another HAProxy serves this load balancer now: its connections here continue. */
  readonly isElsewhere: (key: string) => boolean;
  readonly isReloading: () => boolean;
  readonly requestReload: (cause: 'adopted' | 'settings') => void;
  readonly replan: (keys: Iterable<string>) => void;
  /** There is another active worker. */
  readonly onTaken: () => void;
  /** See HaproxyOptions. */
  readonly onKnown: () => void;
}

/** A worker that ends during a reload is replaced within this time. */
const REPLACEMENT_DELAY_MS = 500;
/** A shorter absence of the worker is not reported. */
const ABSENCE_MS = 1_000;
/** For a worker that booted from an unknown file. */
const UNKNOWN_CONNECT_TIMEOUT_MS = 1_000;

export class ActiveWorker {
  readonly #options: ActiveWorkerOptions;
  readonly #clock: Clock;
  readonly #oldWorkers: OldWorkers;
  #worker: BootedWorker | undefined;
  #reaper: Reaper | undefined;
  /** The replaced worker, and until when it may still take connections. */
  #draining: { readonly worker: BootedWorker; readonly until: number } | undefined;
  /** Keys with commands that were refused during a reload: planned again after it. */
  readonly #afterReload = new Set<string>();
  /** Keys that were planned during a reload: the new worker lacks some of their changes. */
  readonly #changedDuringReload = new Set<string>();
  /** Set while unlessReplaced() waits. */
  #onReplaced: (() => void) | undefined;
  /** The global section changed while there was no active worker, so that the next one may lack the change. */
  #isGlobalLate = false;
  #isObtaining = false;
  #isAway = false;
  #hasServed = false;
  #isBetween = false;
  #closed = false;

  constructor(options: ActiveWorkerOptions, clock: Clock = systemClock) {
    const { masterSocket, settings, hooks, log } = options;
    this.#options = options;
    this.#clock = clock;
    this.#oldWorkers = new OldWorkers({
      masterSocket,
      drainTimeout: () => settings().drainTimeout,
      hardStopAfter: () => settings().hardStopAfter,
      isElsewhere: (backend) => hooks.isElsewhere(ownerOfListener(listenerOfBackend(backend))),
      onEnded: (sessions) =>
        log.info('Ended connections of draining workers to removed members', { sessions }),
      onError: (error) => log.debug('Cannot check draining workers now', { error }),
      clock: this.#clock,
    });
  }

  /** undefined while there is no active worker. */
  get worker(): BootedWorker | undefined {
    return this.#worker;
  }

  /** The replaced worker while it may still take connections; it gets the same changes. */
  get draining(): BootedWorker | undefined {
    if (this.#draining !== undefined && this.#clock.monotonic() > this.#draining.until)
      this.#draining = undefined;
    return this.#draining?.worker;
  }

  /** There has been no worker for a second. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /**
   * The last worker has ended during a reload, and its replacement has not answered yet, which takes seconds on a busy
   * host. One that does not answer any more is another thing.
   */
  get isBetween(): boolean {
    return this.#isBetween;
  }

  /** Removed members that are still to be deleted from the worker. */
  get serversToDelete(): number {
    return this.#reaper?.waiting ?? 0;
  }

  /** Returns when there is a worker, or when the first attempt to get one has failed. */
  obtain(): Promise<void> {
    if (this.#isObtaining) return Promise.resolve();
    this.#isObtaining = true;
    this.#clock.after(ABSENCE_MS, () => this.#reportAbsence());
    const { supervisor, config, settings } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onAttempt = async (): Promise<void> => {
      // Another process starts HAProxy, and needs a file to start from.
      if (settings().haproxySupervisor === 'external') await config.persister.now();
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

  /** Makes this worker the active one. */
  take(next: BootedWorker): void {
    const { config, hooks } = this.#options;
    const old = this.#worker;
    if (this.#closed || old?.runtime.worker.pid === next.runtime.worker.pid) {
      next.runtime.close();
      return;
    }
    this.#worker = next;
    this.#onReplaced?.();
    this.#isAway = false;
    this.#isBetween = false;
    this.#hasServed = true;
    this.#reaper?.close();
    this.#reaper = this.#reaperOf(next);
    this.#oldWorkers.replaced(next, old);
    hooks.onTaken();
    if (old !== undefined) this.#drain(old);
    void next.runtime.closed.then((error) => {
      const isSilent = error instanceof HeadgateError && error.code === 'RUNTIME_TIMEOUT';
      if (next === this.#worker) this.#isBetween = hooks.isReloading() && !isSilent;
      this.lose(next, messageOf(error));
    });
    if (next.structure === '') hooks.requestReload('adopted');
    if (this.#isGlobalLate) hooks.requestReload('settings');
    this.#isGlobalLate = false;
    config.persister.catchUp();
    if (old === undefined) this.#replan(next, old);
    else this.#replanSoon(next, old);
    if (next.structure !== '' && (old?.structure ?? '') === '') hooks.onKnown();
  }

  /** This worker has ended or no longer takes connections: gets another, unless a reload is about to bring it. */
  lose(worker: BootedWorker, why: string): void {
    if (worker !== this.#worker || this.#closed) return;
    const { statistics, supervisor, hooks, log } = this.#options;
    this.#worker = undefined;
    statistics.retire(worker.runtime);
    const obtain = (): void => {
      if (this.#worker !== undefined || this.#closed) return;
      log.warn('Lost the HAProxy worker', { why });
      supervisor.lose(why);
      void this.obtain();
    };
    // A worker without connections ends when its replacement is there: the reload is about to bring it.
    if (hooks.isReloading()) this.#clock.after(REPLACEMENT_DELAY_MS, obtain);
    else obtain();
  }

  /** The global section has changed. */
  globalChanged(): void {
    if (this.#worker === undefined) this.#isGlobalLate = true;
    else this.#options.hooks.requestReload('settings');
  }

  /** `worker` acknowledged these commands: servers that they removed are drained in it and in older workers. */
  acknowledged(worker: BootedWorker, commands: readonly Command[]): void {
    if (worker === this.#worker) this.#reaper?.watch(commands);
    this.#oldWorkers.watch(commands);
  }

  /** These were planned during a reload. */
  changedDuringReload(keys: Iterable<string>): void {
    for (const key of keys) this.#changedDuringReload.add(key);
  }

  /** The result of `answer`, or undefined if the worker is replaced first. For one answer at a time. */
  async unlessReplaced<T>(answer: Promise<T>): Promise<T | undefined> {
    const { promise: replaced, resolve } = Promise.withResolvers<undefined>();
    this.#onReplaced = () => resolve(undefined);
    try {
      return await Promise.race([answer, replaced]);
    } finally {
      this.#onReplaced = undefined;
    }
  }

  /** Plans these again after the reload. */
  planAfterReload(keys: Iterable<string>): void {
    for (const key of keys) this.#afterReload.add(key);
  }

  /** A reload has ended, successful or not. */
  reloadEnded(): void {
    this.#isBetween = false;
    // What the reload would have ended, had it not failed, continues.
    this.#options.hooks.replan([...this.#afterReload, ...this.#changedDuringReload]);
    this.#afterReload.clear();
    this.#changedDuringReload.clear();
    if (this.#worker === undefined) void this.obtain();
  }

  close(): void {
    this.#closed = true;
    this.#reaper?.close();
    this.#oldWorkers.close();
  }

  #drain(old: BootedWorker): void {
    // The grace period began some milliseconds ago, but HAProxy's timer may be late.
    this.#draining = { worker: old, until: this.#clock.monotonic() + GRACE_MS };
    void keepAwakeForTables(old);
    this.#options.statistics.retire(old.runtime);
  }

  /** Nothing can be planned without a worker, but the observers must learn that nothing is served. */
  #reportAbsence(): void {
    if (this.#worker !== undefined || this.#closed || this.#isAway) return;
    this.#isAway = true;
    if (this.#hasServed) this.#options.hooks.replan(this.#options.desired.keys());
  }

  #reaperOf(worker: BootedWorker): Reaper {
    const { settings, log } = this.#options;
    return new Reaper(worker, {
      drainTimeout: () => settings().drainTimeout,
      connectTimeout: (backend) => connectTimeout(backend, worker),
      onDeleted: (count) => log.debug('Deleted servers that were out of use', { count }),
      onError: (error) => log.debug('Stopped deleting servers', { error }),
      clock: this.#clock,
    });
  }

  /** Changes during the reload first, and what must refuse connections: they have waited for the new worker. */
  #replanSoon(next: BootedWorker, old: BootedWorker): void {
    // A new worker listens at all addresses.
    const refusing = old.running.disabled().map(ownerOfListener);
    this.#options.hooks.replan([...this.#changedDuringReload, ...refusing]);
    setImmediate(() => {
      if (this.#closed) return;
      this.#replan(next, old);
      this.#releaseAcls(next, old);
    });
  }

  #replan(next: BootedWorker, old: BootedWorker | undefined): void {
    const { desired, config, hooks } = this.#options;
    // An adopted worker may differ anywhere from the file that it booted from; a worker that the agent booted differs
    // only in what has changed since.
    const isBehind = (each: LoadBalancer): boolean =>
      next.booted.get(each.key) !== config.quarantine.effective(each);
    // These need no commands, but their observers must learn that they are served now.
    const isNew = ({ key }: LoadBalancer): boolean => next.booted.get(key) !== old?.booted.get(key);
    if (old === undefined) hooks.replan(desired.keys());
    else
      hooks.replan(
        [...desired.values()].filter((each) => isBehind(each) || isNew(each)).map(({ key }) => key),
      );
    // Load balancers that were removed.
    const others = new Set([...next.booted.keys(), ...(old?.booted.keys() ?? [])]);
    hooks.replan([...others].filter((key) => !desired.has(key)));
  }

  /** Releases the ACL ids of listeners that are neither in the worker nor desired. */
  #releaseAcls(next: BootedWorker, old: BootedWorker): void {
    const { desired, config } = this.#options;
    for (const [key, before] of old.booted) {
      const after = next.booted.get(key);
      if (after === before) continue;
      const still = new Set(
        [after, desired.get(key)].flatMap((each) => each?.listeners ?? []).map(({ name }) => name),
      );
      for (const { name } of before.listeners) if (!still.has(name)) config.aclIds.release(name);
    }
  }
}

/** Milliseconds, as in the file that the worker booted from. */
function connectTimeout(backend: string, { booted, running }: BootedWorker): number {
  const name = listenerOfBackend(backend);
  const listener = booted.get(ownerOfListener(name))?.listeners.find((each) => each.name === name);
  const spare = running.spares.given(name) && running.spares.profile;
  return (listener ?? spare)?.pool.timeouts.connect ?? UNKNOWN_CONNECT_TIMEOUT_MS;
}
