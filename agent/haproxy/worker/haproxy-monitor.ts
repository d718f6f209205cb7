// Looks after HAProxy once a second: does the worker answer, is it still the one that takes connections, are the
// files and sockets as we left them; less often: can blocked addresses be bound by now, does the worker run what we
// believe.

import { existsSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';
import type { Load } from '../../dataplane/status.ts';
import { trimLog } from '../../host/daemon-output.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import { probeBind } from '../config/bind-probe.ts';
import type { ConfigFile } from '../config/config-file.ts';
import { bindsOf } from '../config/listener-config.ts';
import type { Persister } from '../config/persister.ts';
import type { Quarantine } from '../config/quarantine.ts';
import type { HaproxyPaths } from '../paths.ts';
import { loadOf, parseInfo } from '../socket/readings.ts';
import type { BootedWorker } from '../worker.ts';
import { audit } from './audit.ts';
import type { ReloadCause } from './reload-arbiter.ts';

export type Repair = 'listener' | 'audit' | 'file' | 'process' | 'worker' | 'socket';

export interface HaproxyMonitorOptions {
  readonly paths: HaproxyPaths;
  readonly file: ConfigFile;
  readonly persister: Persister;
  readonly quarantine: Quarantine;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  readonly worker: () => BootedWorker | undefined;
  readonly isReloading: () => boolean;
  /** This worker is not the one that takes connections any more. */
  readonly onReplaced: (worker: BootedWorker) => void;
  readonly requestReload: (cause: ReloadCause) => void;
  readonly replan: (keys: Iterable<string>) => void;
  readonly onRepair: (what: Repair) => void;
  readonly settings: () => {
    readonly auditInterval: number;
    readonly haproxySupervisor: 'agent' | 'external';
    readonly netns: string;
  };
  readonly log: Log;
}

const EVERY = 1_000;
/** Rounds of which it is remembered what HAProxy had to do. */
const LOADS = 120;
/** Blocked addresses that are tried in one round. */
const PROBES = 50;
/** Milliseconds after which an address is tried again that HAProxy could not listen on although we could. */
const FIRST_PATIENCE = 1_000;
const MOST_PATIENCE = 60_000;
const TRIM_EVERY = 60;
const LOG_SIZE = 1024 * 1024;

export class HaproxyMonitor {
  readonly #options: HaproxyMonitorOptions;
  #timer: NodeJS.Timeout | undefined;
  #isBusy = false;
  #rounds = 0;
  #lastAudit = performance.now();
  #auditFrom = 0;
  #probeFrom = 0;
  #loads: readonly Load[] = [];
  /** `address port` to when it was last freed, and how long it is left alone should HAProxy refuse it after all. */
  readonly #freed = new Map<string, { readonly at: number; readonly patience: number }>();

  constructor(options: HaproxyMonitorOptions) {
    this.#options = options;
  }

  /** What HAProxy had to do at each of the last rounds, the newest last; none of those in which there was no worker. */
  get loads(): readonly Load[] {
    return this.#loads;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#round(), EVERY);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #round(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#rounds++;
    try {
      // Without a worker, too: a HAProxy that ends at each start says why each time.
      if (this.#rounds % TRIM_EVERY === 0) await trimLog(this.#options.paths.log, LOG_SIZE);
      const worker = this.#options.worker();
      if (worker === undefined) return;
      await this.#lookAfterWorker(worker);
      await this.#lookAfterFiles();
      await this.#probeBlocked();
      if (performance.now() - this.#lastAudit >= this.#options.settings().auditInterval) await this.#audit();
    } catch (error) {
      // A lost connection says so itself.
      this.#options.log.debug('Cannot look after HAProxy now', { error: messageOf(error) });
    } finally {
      this.#isBusy = false;
    }
  }

  async #lookAfterWorker(worker: BootedWorker): Promise<void> {
    const info = parseInfo(await worker.runtime.ask('show info'));
    this.#loads = [...this.#loads.slice(1 - LOADS), loadOf(info)];
    if (!info.stopping || worker !== this.#options.worker() || this.#options.isReloading()) return;
    this.#options.log.warn('HAProxy was reloaded by someone else');
    this.#options.onRepair('worker');
    this.#options.onReplaced(worker);
  }

  async #lookAfterFiles(): Promise<void> {
    const { file, persister, paths, isReloading, onRepair, requestReload, settings, log } = this.#options;
    if (isReloading()) return;
    await file.keepBeside();
    if (!file.isUntouched()) await persister.now();
    if (!existsSync(paths.masterSocket) && settings().haproxySupervisor === 'agent' && !isReloading()) {
      log.warn("HAProxy's master socket is gone: reloading by signal to bring it back");
      onRepair('socket');
      requestReload('socket-lost');
    }
  }

  async #probeBlocked(): Promise<void> {
    const { quarantine, wanted, requestReload, settings } = this.#options;
    const { blocked } = quarantine;
    if (blocked.length === 0) return;
    const places = new Set<string>();
    for (const { listeners } of wanted.values())
      for (const place of listeners.flatMap(bindsOf)) places.add(place);
    const some = blocked.slice(this.#probeFrom, this.#probeFrom + PROBES);
    this.#probeFrom = this.#probeFrom + PROBES < blocked.length ? this.#probeFrom + PROBES : 0;
    for (const { address, port } of some) {
      const place = `${address} ${port}`;
      const isWanted = places.has(place);
      const ignoreAccess = settings().haproxySupervisor === 'external';
      if (isWanted && this.#isTooSoon(place)) continue;
      const canProbe = settings().netns === '';
      if (isWanted && canProbe && (await probeBind(address, port, ignoreAccess)) !== undefined) continue;
      quarantine.unblock(address, port);
      if (!isWanted) {
        this.#freed.delete(place);
        continue;
      }
      this.#noteFreed(place);
      requestReload('unblocked');
    }
  }

  /** HAProxy may lack rights that we have: what it has refused again and again it is seldom asked for. */
  #isTooSoon(place: string): boolean {
    const { at, patience } = this.#freed.get(place) ?? { at: 0, patience: 0 };
    return performance.now() < at + patience;
  }

  #noteFreed(place: string): void {
    const now = performance.now();
    for (const [each, { at }] of this.#freed) if (now - at >= 2 * MOST_PATIENCE) this.#freed.delete(each);
    const { at, patience } = this.#freed.get(place) ?? { at: now, patience: 0 };
    const isAgain = now - at < 2 * MOST_PATIENCE && patience > 0;
    this.#freed.set(place, {
      at: now,
      patience: isAgain ? Math.min(MOST_PATIENCE, 2 * patience) : FIRST_PATIENCE,
    });
  }

  async #audit(): Promise<void> {
    const { worker, replan, onRepair, log } = this.#options;
    const audited = worker();
    if (audited === undefined) return;
    this.#lastAudit = performance.now();
    const { drifted, next } = await audit(audited, this.#auditFrom);
    this.#auditFrom = next;
    if (audited !== worker()) return;
    for (const [listener, what] of drifted) {
      log.warn('HAProxy runs something else than it was told: repairing', { listener, what });
      onRepair('audit');
    }
    replan([...drifted.keys()].map(ownerOfListener));
  }
}
