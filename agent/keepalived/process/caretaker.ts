// Looks after keepalived between one change and the next: that it is there, that it does something, that it, its file and
// its FIFO are as they should be. What is not is left to the next step.

import type { Log } from '../../base/log.ts';
import { trimLog } from '../../base/log-file.ts';
import type { ConfigFile } from '../config/config-file.ts';
import type { KeepalivedMetrics } from '../metrics.ts';
import type { KeepalivedPaths } from '../paths.ts';
import type { Steps } from '../steps.ts';
import type { Daemon } from './daemon.ts';
import type { NotifyFifo } from './fifo.ts';
import { Pulse } from './pulse.ts';

export interface CaretakerOptions {
  readonly paths: KeepalivedPaths;
  readonly daemon: Daemon;
  readonly file: ConfigFile;
  readonly fifo: NotifyFifo;
  readonly steps: Steps;
  /** Milliseconds between two advertisements. */
  readonly advertInterval: () => number;
  /** Milliseconds. */
  readonly auditInterval: () => number;
  /** Called at each look. */
  readonly onLook: () => void;
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
    this.#pulse = new Pulse(options.paths, options.advertInterval);
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
    return this.#isOpen && !this.#options.steps.isUnderWay;
  }

  /** Whether keepalived is there and does something. */
  async look(): Promise<void> {
    if (!this.#isAtWork) return;
    const { daemon, steps, onLook } = this.#options;
    onLook();
    if (await daemon.isAnother()) void steps.settle();
    else if (await this.#pulse.isStill(performance.now())) await this.#endHung();
  }

  /**
   * One that hangs is no host's master any more, but the kernel goes on answering for its addresses, as the one that has
   * taken them over does. It cannot be told anything, so it is ended like one that was killed.
   */
  async #endHung(): Promise<void> {
    const { daemon, steps, log } = this.#options;
    const hung = daemon.pid;
    const isAlive = (await daemon.ask()) !== undefined;
    this.#pulse.reset();
    if (isAlive || !this.#isOpen || daemon.pid !== hung) return;
    log.error('keepalived hangs: it is ended', { pid: hung });
    await daemon.end();
    void steps.settle();
  }

  #auditLater(): void {
    this.#auditing = setTimeout(() => {
      void this.#audit().finally(() => {
        if (this.#isOpen) this.#auditLater();
      });
    }, this.#options.auditInterval()).unref();
  }

  /** Compares what keepalived, its file and its FIFO are with what they should be. */
  async #audit(): Promise<void> {
    if (!this.#isAtWork) return;
    const { paths, daemon, file, fifo, steps, metrics, log } = this.#options;
    await trimLog(paths.log, LOG_SIZE);
    if (!(await fifo.isIntact())) await fifo.open().catch((error) => steps.fail(error));
    const found = await file.read();
    if (steps.isUnderWay) return;
    if (found !== file.text) {
      log.warn('keepalived.conf was changed by someone else: written again', { path: paths.config });
      metrics.repaired('file');
      file.take(found);
      void steps.settle();
    } else if (daemon.pid !== 0) {
      const difference = await daemon.tell(file.text ?? '');
      if (difference === '') return;
      log.warn('keepalived is not as it should be', { error: difference });
      metrics.repaired('keepalived');
      void steps.settle();
    }
  }
}
