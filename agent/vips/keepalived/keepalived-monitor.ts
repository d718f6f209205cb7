// Checks keepalived between changes: one keepalived runs, does not hang, and matches its file. The next step of the
// reconciler repairs what the monitor finds.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { Reconciler } from '../../base/reconciler.ts';
import { Rounds } from '../../base/rounds.ts';
import { trimLog } from '../../host/daemon-output.ts';
import type { ConfigFile } from './config-file.ts';
import type { Daemon } from './daemon.ts';
import type { KeepalivedOptions } from './options.ts';
import type { KeepalivedPaths } from './paths.ts';
import { Pulse } from './pulse.ts';

export interface KeepalivedMonitorOptions extends Pick<KeepalivedOptions, 'metrics' | 'log'> {
  readonly paths: KeepalivedPaths;
  readonly daemon: Daemon;
  readonly file: ConfigFile;
  readonly reconciler: Reconciler;
  /** Milliseconds between two advertisements. */
  readonly advertInterval: () => number;
  /** Milliseconds. */
  readonly auditInterval: () => number;
  /** Called at each check. */
  readonly onCheck: () => void;
  /** True if VIPs are refused: the reason may be over. */
  readonly hasRefused: () => boolean;
  readonly clock?: Clock;
}

const CHECK_INTERVAL_MS = 500;
const MAX_LOG_BYTES = 4 * 1024 * 1024;

export class KeepalivedMonitor {
  readonly #options: KeepalivedMonitorOptions;
  readonly #clock: Clock;
  readonly #pulse: Pulse;
  readonly #checks: Rounds;
  readonly #audits: Rounds;
  #isOpen = false;

  constructor(options: KeepalivedMonitorOptions) {
    const { daemon, reconciler, advertInterval, auditInterval, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#pulse = new Pulse(daemon.vrrpProcess, advertInterval);
    const onFailed = (error: unknown): void => reconciler.fail(error);
    this.#checks = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed,
      clock,
    });
    this.#audits = new Rounds({ intervalMs: auditInterval, work: () => this.#audit(), onFailed, clock });
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
  }

  /** Checks at once. Never rejects: an error is a fault until a step succeeds. */
  check(): Promise<void> {
    return this.#checks.now();
  }

  /** The interval of audits has changed. */
  retime(): void {
    if (this.#isOpen) this.#audits.retime();
  }

  get #isAtWork(): boolean {
    return this.#isOpen && !this.#options.reconciler.isUnderWay;
  }

  async #check(): Promise<void> {
    if (!this.#isAtWork) return;
    const { daemon, reconciler, onCheck } = this.#options;
    onCheck();
    if (await daemon.hasChanged()) void reconciler.reconcile();
    else if (await this.#pulse.isStill(this.#clock.monotonic())) await this.#killHung();
  }

  /**
   * A keepalived that hangs sends no advertisements, so the other host takes over; but the kernel still answers for its
   * addresses. It takes no commands, so the agent kills it.
   */
  async #killHung(): Promise<void> {
    const { daemon, reconciler, log } = this.#options;
    const hung = daemon.pid;
    const isAlive = (await daemon.readDump()) !== undefined;
    this.#pulse.reset();
    if (isAlive || !this.#isOpen || daemon.pid !== hung) return;
    log.error('keepalived hangs: the agent kills it', { pid: hung });
    await daemon.kill();
    void reconciler.reconcile();
  }

  /** Compares keepalived and its file with the desired state. */
  async #audit(): Promise<void> {
    if (!this.#isAtWork) return;
    const { paths, daemon, file, reconciler, hasRefused, metrics, log } = this.#options;
    await trimLog(paths.log, MAX_LOG_BYTES);
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
      if (difference !== '' || hasRefused()) void reconciler.reconcile();
      else await daemon.removeForeign().catch((error) => reconciler.fail(error));
    }
  }
}
