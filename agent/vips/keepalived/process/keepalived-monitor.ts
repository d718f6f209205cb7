// Looks after keepalived between one change and the next: that it is there, alone, and does something, that it and its
// file are as they should be. What is not is left to the next step.

import type { Reconciler } from '../../../base/reconciler.ts';
import { trimLog } from '../../../host/daemon-output.ts';
import type { Log } from '../../../host/log.ts';
import type { ConfigFile } from '../config/config-file.ts';
import type { KeepalivedMetrics } from '../metrics.ts';
import type { KeepalivedPaths } from '../paths.ts';
import type { Daemon } from './daemon.ts';
import { Pulse } from './pulse.ts';

export interface CaretakerOptions {
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
}

/** Milliseconds within which it is noticed that keepalived is gone. */
const LOOK = 500;
const LOG_SIZE = 4 * 1024 * 1024;

export class Caretaker {
  readonly #options: CaretakerOptions;
  readonly #pulse: Pulse;
  #looking: NodeJS.Timeout | undefined;
  #auditing: NodeJS.Timeout | undefined;
  #isOpen = false;

  constructor(options: CaretakerOptions) {
    this.#options = options;
    this.#pulse = new Pulse(options.daemon.vrrpProcess, options.advertInterval);
  }

  start(): void {
    this.#isOpen = true;
    this.#looking = setInterval(() => void this.look(), LOOK).unref();
    this.#auditLater();
  }

  close(): void {
    this.#isOpen = false;
    clearInterval(this.#looking);
    clearTimeout(this.#auditing);
  }

  get #isAtWork(): boolean {
    return this.#isOpen && !this.#options.reconciler.isUnderWay;
  }

  /** Whether keepalived is there and does something. Never rejects: what cannot be told is a fault until a step can. */
  async look(): Promise<void> {
    if (!this.#isAtWork) return;
    const { daemon, reconciler, onLook } = this.#options;
    onLook();
    try {
      if (await daemon.isAnother()) void reconciler.reconcile();
      else if (await this.#pulse.isStill(performance.now())) await this.#endHung();
    } catch (error) {
      reconciler.fail(error);
    }
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

  /** The interval may be another one: nobody waits for the end of the old one. */
  retime(): void {
    if (this.#auditing === undefined || !this.#isOpen) return;
    clearTimeout(this.#auditing);
    this.#auditLater();
  }

  #auditLater(): void {
    this.#auditing = setTimeout(() => {
      this.#auditing = undefined;
      void this.#audit()
        .catch((error) => this.#options.reconciler.fail(error))
        .finally(() => {
          if (this.#isOpen) this.#auditLater();
        });
    }, this.#options.auditInterval()).unref();
  }

  /** Compares what keepalived and its files are with what they should be. */
  async #audit(): Promise<void> {
    if (!this.#isAtWork) return;
    const { paths, daemon, file, reconciler, lacksVips, metrics, log } = this.#options;
    await trimLog(paths.log, LOG_SIZE);
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
