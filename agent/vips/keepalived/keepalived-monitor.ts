// Checks keepalived between changes: one keepalived runs, does not hang, sends and receives advertisements, and matches
// its file. The next step of the reconciler repairs what the monitor finds.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { Reconciler } from '../../base/reconciler.ts';
import { Rounds } from '../../base/rounds.ts';
import { DaemonLog } from '../../host/daemon-output.ts';
import type { Daemon } from './daemon.ts';
import type { ConfigFile } from './files/config-file.ts';
import type { HostReadiness } from './host/host-readiness.ts';
import type { KeepalivedOptions } from './options.ts';
import type { KeepalivedPaths } from './paths.ts';
import { Pulse, stillAfterMs } from './process/pulse.ts';
import { AdvertFlow } from './states/advert-flow.ts';
import type { VrrpStates } from './states/vrrp-states.ts';

export interface KeepalivedMonitorOptions extends Pick<KeepalivedOptions, 'metrics' | 'log'> {
  readonly paths: KeepalivedPaths;
  readonly watched: WatchedKeepalived;
  readonly reconciler: Reconciler;
  readonly intervals: MonitorIntervals;
  /** Called at each check. */
  readonly onCheck: () => void;
  /** True if VIPs are refused: the reason may be over. */
  readonly hasRefused: () => boolean;
}

export interface WatchedKeepalived {
  readonly daemon: Daemon;
  readonly file: ConfigFile;
  readonly states: Pick<VrrpStates, 'counts'>;
  readonly readiness: Pick<HostReadiness, 'check'>;
}

/** Milliseconds. */
export interface MonitorIntervals {
  /** Between two advertisements. */
  readonly advert: () => number;
  readonly audit: () => number;
}

const CHECK_INTERVAL_MS = 500;
const MAX_LOG_BYTES = 4 * 1024 * 1024;

export class KeepalivedMonitor {
  readonly #options: KeepalivedMonitorOptions;
  readonly #clock: Clock;
  readonly #daemonLog: DaemonLog;
  readonly #pulse: Pulse;
  readonly #flow: AdvertFlow;
  readonly #checks: Rounds;
  readonly #audits: Rounds;
  /** Repairs of stopped advertisements, in a row. */
  #repairs = 0;
  /** No repair before this time of the monotonic clock. */
  #nextRepair = 0;
  #isOpen = false;

  constructor(options: KeepalivedMonitorOptions, clock: Clock = systemClock) {
    const { watched, reconciler, intervals } = options;
    this.#options = options;
    this.#clock = clock;
    this.#daemonLog = new DaemonLog(options.paths.log, MAX_LOG_BYTES);
    this.#pulse = new Pulse(watched.daemon.vrrpProcess, intervals.advert);
    this.#flow = new AdvertFlow(intervals.advert);
    const onFailed = (error: unknown): void => reconciler.fail(error);
    this.#checks = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed,
      clock,
    });
    this.#audits = new Rounds({ intervalMs: intervals.audit, work: () => this.#audit(), onFailed, clock });
  }

  start(): void {
    this.#isOpen = true;
    this.#checks.start();
    this.#audits.start();
  }

  close(): void {
    this.#isOpen = false;
    this.#checks.close();
    this.#audits.close();
    this.#daemonLog.close();
  }

  /** Checks at once. Never rejects: an error is a fault until a step succeeds. */
  check(): Promise<void> {
    return this.#checks.now();
  }

  /** The interval of audits has changed. */
  retime(): void {
    if (this.#isOpen) this.#audits.retime();
  }

  /** '' if advertisements flow. */
  get fault(): string {
    return this.#flow.fault;
  }

  /** True if a master sends or a backup receives no advertisements of the instance. */
  hasStopped(instance: string): boolean {
    return this.#flow.hasStopped(instance);
  }

  get #isAtWork(): boolean {
    return this.#isOpen && !this.#options.reconciler.isUnderWay;
  }

  async #check(): Promise<void> {
    if (!this.#isAtWork) return;
    const { watched, reconciler, onCheck } = this.#options;
    const { daemon } = watched;
    onCheck();
    if (await daemon.hasChanged()) void reconciler.reconcile();
    else if (this.fault !== '' || (await this.#pulse.isSlow(this.#clock.monotonic()))) await this.#examine();
  }

  /** Finds out if keepalived hangs, or if its advertisements have stopped. */
  async #examine(): Promise<void> {
    const { watched, log } = this.#options;
    const { daemon } = watched;
    const examined = daemon.pid;
    const isAlive = await daemon.readStates();
    this.#pulse.reset();
    if (!this.#isOpen || daemon.pid !== examined) return;
    if (isAlive) {
      await this.#repairFlow();
      return;
    }
    log.error('keepalived hangs: the agent kills it', { pid: examined });
    await this.#kill();
  }

  /** A reload opens the sockets of keepalived again; if that is not enough, another keepalived has to start. */
  async #repairFlow(): Promise<void> {
    const { watched, reconciler, intervals, metrics, log } = this.#options;
    const { daemon, states } = watched;
    const now = this.#clock.monotonic();
    this.#flow.judge(states.counts(), now);
    if (this.fault === '') {
      if (this.#repairs > 0) log.info('keepalived sends and receives advertisements again');
      this.#repairs = 0;
      return;
    }
    if (this.#repairs > 0 && now < this.#nextRepair) return;
    this.#repairs++;
    this.#nextRepair = now + stillAfterMs(intervals.advert());
    metrics.repaired('keepalived');
    if (this.#repairs % 2 === 0) {
      log.error(`${this.fault}: the agent kills it`, { pid: daemon.pid });
      await this.#kill();
      return;
    }
    log.warn(`${this.fault}: the agent reloads it`, { pid: daemon.pid });
    daemon.needsReload();
    void reconciler.reconcile();
  }

  /**
   * A keepalived that hangs sends no advertisements, so the other host takes over; but the kernel still answers for its
   * addresses. It takes no commands, so the agent kills it.
   */
  async #kill(): Promise<void> {
    const { watched, reconciler } = this.#options;
    await watched.daemon.kill();
    void reconciler.reconcile();
  }

  /** Compares keepalived and its file with the desired state. */
  async #audit(): Promise<void> {
    if (!this.#isAtWork) return;
    const { watched, reconciler, hasRefused, metrics, log } = this.#options;
    const { daemon, file, readiness } = watched;
    this.#daemonLog.trim(daemon.pid);
    await readiness.check();
    await daemon.checkForSecond();
    const found = await file.read();
    if (reconciler.isUnderWay) return;
    if (file.disown(found)) void reconciler.reconcile();
    else if (daemon.pid !== 0) {
      const difference = await daemon.compare(file.text ?? '');
      if (difference !== '') {
        log.warn('keepalived does not match keepalived.conf', { error: difference });
        metrics.repaired('keepalived');
      }
      if (difference === '') {
        await this.#repairFlow();
        await daemon.removeForeign().catch((error) => reconciler.fail(error));
      }
      if (difference !== '' || hasRefused()) void reconciler.reconcile();
    }
  }
}
