// Checks HAProxy once a second: the worker answers and is still the one that takes connections, its files and sockets
// are unchanged, addresses that were left out can be bound. Less often audits the worker and ends workers that are overdue.

import { existsSync } from 'node:fs';
import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Load } from '../../dataplane/status.ts';
import { DaemonLog } from '../../host/daemon-output.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import type { BootedWorker } from '../booted-worker.ts';
import { probeBind } from '../config/bind-probe.ts';
import type { ConfigParts } from '../config/config-parts.ts';
import { bindsOf } from '../config/listener-config.ts';
import { strangers } from '../instance/find-master.ts';
import { masterPid } from '../instance/process.ts';
import type { HaproxyPaths } from '../paths.ts';
import type { HaproxySettings } from '../settings.ts';
import { loadOf, parseInfo } from '../socket/readings.ts';
import { audit, FIRST_POSITION } from './audit.ts';
import { OverdueWorkers } from './overdue-workers.ts';
import type { ReloadCause } from './reload-arbiter.ts';

export type Repair = 'listener' | 'audit' | 'file' | 'process' | 'worker' | 'socket';

export interface HaproxyMonitorOptions {
  readonly paths: HaproxyPaths;
  readonly config: Pick<ConfigParts, 'file' | 'persister' | 'quarantine'>;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly worker: () => BootedWorker | undefined;
  readonly settings: () => Pick<
    HaproxySettings,
    'auditInterval' | 'haproxySupervisor' | 'hardStopAfter' | 'netns'
  >;
  readonly hooks: MonitorHooks;
  readonly log: Log;
  readonly clock?: Clock;
}

export interface MonitorHooks {
  readonly isReloading: () => boolean;
  /** A reload was requested, and has not been carried out. */
  readonly isReloadDue: () => boolean;
  /** Another worker takes the connections now. */
  readonly onReplaced: (worker: BootedWorker) => void;
  readonly requestReload: (cause: ReloadCause) => void;
  readonly replan: (keys: Iterable<string>) => void;
  readonly onRepair: (what: Repair) => void;
  /** Removes files that no listener has any more. */
  readonly tidy: () => Promise<void>;
}

const INTERVAL_MS = 1_000;
/** Rounds whose load is kept. */
const LOADS = 120;
/** Blocked addresses that one round tries. */
const PROBES_PER_ROUND = 50;
/** The wait before HAProxy is asked again for an address that it refused although the agent could bind it. */
const BLOCKED_BACKOFF = { firstMs: 1_000, mostMs: 60_000 };
const ROUNDS_PER_TRIM = 60;
const ROUNDS_PER_LOOK = 10;
const MAX_LOG_BYTES = 1024 * 1024;

export class HaproxyMonitor {
  readonly #options: HaproxyMonitorOptions;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();
  readonly #overdue: OverdueWorkers;
  readonly #daemonLog: DaemonLog;
  /** At the last look for a second HAProxy, which reads the command lines of all processes. */
  #adminSocket: FileIdentity | undefined;
  #count = 0;
  #lastAudit: number;
  #auditFrom = FIRST_POSITION;
  #probeFrom = 0;
  #loads: readonly Load[] = [];
  /** By `address port`: when it was last unblocked, and how often in a row HAProxy refused it afterwards. */
  readonly #unblocked = new Map<string, { readonly at: number; readonly failures: number }>();

  constructor(options: HaproxyMonitorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#lastAudit = this.#clock.monotonic();
    this.#daemonLog = new DaemonLog(options.paths.log, MAX_LOG_BYTES);
    this.#overdue = new OverdueWorkers({
      ...options,
      hardStopAfter: () => options.settings().hardStopAfter,
      now: () => this.#clock.monotonic(),
    });
    this.#rounds = new Rounds({
      intervalMs: () => INTERVAL_MS,
      work: () => this.#round(),
      // A lost connection is reported by the active worker.
      onFailed: (error) => options.log.debug('Cannot check HAProxy now', { error: messageOf(error) }),
      clock: this.#clock,
    });
  }

  /** HAProxy's load in the last rounds that had a worker, the newest last. */
  get loads(): readonly Load[] {
    return this.#loads;
  }

  /** A second HAProxy runs with the same file; '' if none does. */
  get fault(): string {
    return this.#fault.text;
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
    this.#daemonLog.close();
  }

  async #round(): Promise<void> {
    const { paths, worker, settings, hooks } = this.#options;
    this.#count++;
    // Also without a worker: a HAProxy that ends at each start writes its log each time.
    if (this.#count % ROUNDS_PER_TRIM === 0) this.#daemonLog.trim(await masterPid(paths));
    const active = worker();
    if (active === undefined) return;
    await this.#checkWorker(active);
    await this.#checkFiles();
    await this.#checkStrangers(active);
    if (this.#count % ROUNDS_PER_LOOK === 0 && !hooks.isReloading()) await this.#overdue.end();
    if (this.#count % ROUNDS_PER_TRIM === 0 && !hooks.isReloading()) await hooks.tidy();
    await this.#probeBlocked();
    if (this.#clock.monotonic() - this.#lastAudit >= settings().auditInterval) await this.#audit();
  }

  async #checkWorker(worker: BootedWorker): Promise<void> {
    const { hooks, log } = this.#options;
    const info = parseInfo(await worker.runtime.ask('show info'));
    this.#loads = [...this.#loads.slice(1 - LOADS), loadOf(info)];
    if (!info.stopping || worker !== this.#options.worker() || hooks.isReloading()) return;
    log.warn('Another process reloaded HAProxy');
    hooks.onRepair('worker');
    hooks.onReplaced(worker);
  }

  async #checkFiles(): Promise<void> {
    const { config, paths, hooks, settings, log } = this.#options;
    const { file, persister } = config;
    if (hooks.isReloading()) return;
    await file.keepBeside();
    if (!file.isUntouched()) await persister.now();
    if (!existsSync(paths.masterSocket) && settings().haproxySupervisor === 'agent' && !hooks.isReloading()) {
      log.warn("HAProxy's master socket was removed: reloading by signal to create it again");
      hooks.onRepair('socket');
      hooks.requestReload('socket-lost');
    }
  }

  /** A second HAProxy with the same file replaces the admin socket; HAProxy's own reloads do not. */
  async #checkStrangers({ runtime }: BootedWorker): Promise<void> {
    const { paths, log } = this.#options;
    const socket = identityOf(paths.adminSocket);
    const isDue = this.fault !== '' && this.#count % ROUNDS_PER_LOOK === 0;
    if (isSameFile(socket, this.#adminSocket) && !isDue) return;
    const [pid] = await strangers(paths, runtime.worker.pid);
    this.#adminSocket = socket;
    const text = `Another HAProxy runs with "${paths.config}", process ${pid}: it takes part of the connections, also for members that are gone; stop it`;
    if (pid !== undefined && this.#fault.set(text))
      log.error('Another HAProxy takes part of the connections', { pid });
    if (pid === undefined && this.#fault.clear()) log.info('The other HAProxy has ended');
  }

  async #probeBlocked(): Promise<void> {
    const { config, desired, hooks, settings } = this.#options;
    const { quarantine } = config;
    const { blocked } = quarantine;
    if (blocked.length === 0) return;
    const binds = new Set([...desired.values()].flatMap(({ listeners }) => listeners.flatMap(bindsOf)));
    const some = blocked.slice(this.#probeFrom, this.#probeFrom + PROBES_PER_ROUND);
    this.#probeFrom = this.#probeFrom + some.length < blocked.length ? this.#probeFrom + some.length : 0;
    const { haproxySupervisor, netns } = settings();
    for (const { address, port } of some) {
      const bind = `${address} ${port}`;
      if (!binds.has(bind)) {
        quarantine.unblock(address, port);
        this.#unblocked.delete(bind);
        continue;
      }
      // HAProxy might refuse that reload for this address, and with it what others wait for.
      if (hooks.isReloadDue() || this.#isTooSoon(bind)) continue;
      const isRefused = async () =>
        (await probeBind(address, port, haproxySupervisor === 'external')) !== undefined;
      if (netns === '' && (await isRefused())) continue;
      quarantine.unblock(address, port);
      this.#noteUnblocked(bind);
      hooks.requestReload('unblocked');
    }
  }

  /** HAProxy may lack a right that the agent has: it then refuses the address again and again. */
  #isTooSoon(bind: string): boolean {
    const before = this.#unblocked.get(bind);
    return (
      before !== undefined &&
      this.#clock.monotonic() < before.at + backoffMs(before.failures, BLOCKED_BACKOFF)
    );
  }

  #noteUnblocked(bind: string): void {
    const now = this.#clock.monotonic();
    for (const [each, { at }] of this.#unblocked)
      if (now - at >= 2 * BLOCKED_BACKOFF.mostMs) this.#unblocked.delete(each);
    this.#unblocked.set(bind, { at: now, failures: (this.#unblocked.get(bind)?.failures ?? 0) + 1 });
  }

  async #audit(): Promise<void> {
    const { worker, hooks, log } = this.#options;
    const audited = worker();
    if (audited === undefined) return;
    this.#lastAudit = this.#clock.monotonic();
    const { drifted, next } = await audit(audited, this.#auditFrom, this.#options.paths);
    this.#auditFrom = next;
    if (audited !== worker()) return;
    for (const [listener, what] of drifted) {
      log.warn('HAProxy differs from the state that the agent gave it: repairing', { listener, what });
      hooks.onRepair('audit');
    }
    hooks.replan([...drifted.keys()].map(ownerOfListener));
  }
}
