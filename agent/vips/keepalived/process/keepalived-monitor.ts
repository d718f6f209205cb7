// Looks after keepalived between one change and the next: that it runs, alone, and does something, and that it has what
// its file says. What is wrong is left to the next step.

import { type Clock, systemClock } from '../../../base/clock.ts';
import type { Reconciler } from '../../../base/reconciler.ts';
import { Rounds } from '../../../base/rounds.ts';
import { trimLog } from '../../../host/daemon-output.ts';
import type { Log } from '../../../host/log.ts';
import type { ConfigFile } from '../config/config-file.ts';
import type { KeepalivedMetrics } from '../metrics.ts';
import type { KeepalivedPaths } from '../paths.ts';
import type { Daemon } from './daemon.ts';
import { Pulse } from './pulse.ts';

export interface KeepalivedMonitorOptions {
  readonly paths: KeepalivedPaths;
  readonly daemon: Daemon;
  readonly file: ConfigFile;
  readonly reconciler: Reconciler;
  /** Milliseconds between two advertisements. */
  readonly advertInterval: () => number;
  /** Milliseconds. */
  readonly auditInterval: () => number;
  /** Called at each look. */
  readonly onLook: () => void;
  /** Whether there are VIPs that keepalived was not given: what stood against it may be over. */
  readonly lacksVips: () => boolean;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
  readonly clock?: Clock;
}

const LOOK_INTERVAL_MS = 500;
const MAX_LOG_BYTES = 4 * 1024 * 1024;

export class KeepalivedMonitor {
  readonly #options: KeepalivedMonitorOptions;
  readonly #clock: Clock;
  readonly #pulse: Pulse;
  readonly #looks: Rounds;
  readonly #audits: Rounds;
  #isOpen = false;

  constructor(options: KeepalivedMonitorOptions) {
    const { daemon, reconciler, advertInterval, auditInterval, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#pulse = new Pulse(daemon.vrrpProcess, advertInterval);
    const onFailed = (error: unknown): void => reconciler.fail(error);
    this.#looks = new Rounds({
      intervalMs: () => LOOK_INTERVAL_MS,
      work: () => this.#look(),
      onFailed,
      clock,
    });
    this.#audits = new Rounds({ intervalMs: auditInterval, work: () => this.#audit(), onFailed, clock });
  }

  start(): void {
    this.#isOpen = true;
    this.#looks.start();
    this.#audits.start();
  }

  close(): void {
    this.#isOpen = false;
    this.#looks.close();
    this.#audits.close();
  }

  /** A look at once. Never rejects: what cannot be seen is a fault until a step can. */
  look(): Promise<void> {
    return this.#looks.now();
  }

  /** The interval of audits has changed. */
  retime(): void {
    if (this.#isOpen) this.#audits.retime();
  }

  get #isAtWork(): boolean {
    return this.#isOpen && !this.#options.reconciler.isUnderWay;
  }

  async #look(): Promise<void> {
    if (!this.#isAtWork) return;
    const { daemon, reconciler, onLook } = this.#options;
    onLook();
    if (await daemon.isAnother()) void reconciler.reconcile();
    else if (await this.#pulse.isStill(this.#clock.monotonic())) await this.#endHung();
  }

  /**
   * One that hangs is no host's master any more, but the kernel goes on answering for its addresses, as the one that has
   * taken them over does. It cannot be told anything, so it is ended like one that was killed.
   */
  async #endHung(): Promise<void> {
    const { daemon, reconciler, log } = this.#options;
    const hung = daemon.pid;
    const isAlive = (await daemon.ask()) !== undefined;
    this.#pulse.reset();
    if (isAlive || !this.#isOpen || daemon.pid !== hung) return;
    log.error('keepalived hangs: it is ended', { pid: hung });
    await daemon.end();
    void reconciler.reconcile();
  }

  /** Compares keepalived and its file with desired. */
  async #audit(): Promise<void> {
    if (!this.#isAtWork) return;
    const { paths, daemon, file, reconciler, lacksVips, metrics, log } = this.#options;
    await trimLog(paths.log, MAX_LOG_BYTES);
    await daemon.lookForSecond();
    const found = await file.read();
    if (reconciler.isUnderWay) return;
    if (file.disown(found)) void reconciler.reconcile();
    else if (daemon.pid !== 0) {
      const difference = await daemon.tell(file.text ?? '');
      if (difference !== '') {
        log.warn('keepalived is not as it should be', { error: difference });
        metrics.repaired('keepalived');
      }
      if (difference !== '' || lacksVips()) void reconciler.reconcile();
      else await daemon.sweepBackup().catch((error) => reconciler.fail(error));
    }
  }
}
