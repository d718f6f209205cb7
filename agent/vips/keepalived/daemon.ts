// The keepalived that runs, as far as the agent knows it: adopts or starts it, reloads it, reads its state, ends it. Its
// desired state comes in as the text of keepalived.conf.

import { sleep, systemClock } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { DaemonProcess } from '../../host/daemon/daemon-process.ts';
import { ageOf, runsWith } from '../../host/daemon/find.ts';
import { differenceOf, heldIn } from './files/config-text.ts';
import type { KeepalivedOptions } from './options.ts';
import type { KeepalivedPaths } from './paths.ts';
import { DumpReader, type InstanceDump } from './process/dump.ts';
import { removeForeign, removeLeftovers } from './process/leftovers.ts';
import {
  type KeepalivedProgram,
  keepalivedDaemon,
  keepalivedPid,
  keepalivedProgram,
  killKeepalived,
  secondKeepalived,
  signalKeepalived,
  vrrpProcess,
} from './process/process.ts';
import type { VrrpStates } from './states/vrrp-states.ts';

export interface DaemonOptions extends Pick<KeepalivedOptions, 'settings' | 'metrics' | 'log'> {
  readonly paths: KeepalivedPaths;
  /** Gets each state that is read. */
  readonly states: VrrpStates;
  /** A keepalived that was started here has ended. */
  readonly onExit: () => void;
}

/** A younger keepalived may not be ready for signals. */
const READY_AGE_MS = 1_000;
const RELOAD_TIMEOUT_MS = 3_000;
const RELOAD_POLL_INTERVAL_MS = 20;
const NO_ANSWER = 'it does not answer';

export class Daemon {
  readonly #options: DaemonOptions;
  readonly #process: DaemonProcess;
  readonly #dumps: DumpReader;
  #program: KeepalivedProgram = { version: '', dumpSignal: 0, canAuthenticate: false };
  #isVerified = false;
  /** As of the last dump of this process; undefined before the first. */
  #doesCountForgeries: boolean | undefined;
  #isReloading = false;
  /** Addresses of an ended keepalived may still be on the interfaces. */
  #hasLeftovers = true;
  /** Processes of a second keepalived with the same files. */
  #second: readonly number[] = [];
  #onNotified: () => void = () => undefined;

  constructor(options: DaemonOptions) {
    const { settings, paths, onExit, log } = options;
    this.#options = options;
    this.#process = new DaemonProcess(keepalivedDaemon(settings, paths), onExit, log);
    this.#dumps = new DumpReader(paths);
  }

  /** '' until the program is found. */
  get version(): string {
    return this.#program.version;
  }

  /** Also the keepalived that runs, which may be an older one than the program by now. */
  get canAuthenticate(): boolean {
    return this.#program.canAuthenticate && (this.pid === 0 || this.#doesCountForgeries !== false);
  }

  /** 0 if keepalived does not run. */
  get pid(): number {
    return this.#process.pid;
  }

  /** True if its state was seen to match keepalived.conf. */
  get isVerified(): boolean {
    return this.#isVerified;
  }

  /** '' if no second keepalived runs. */
  get fault(): string {
    const pids = this.#second.join(' ');
    return pids && `A second keepalived runs with the same files: end it by "kill -KILL ${pids}"`;
  }

  /** Until 2.4 the FIFO may get a wrong state during a reload; the state that is read afterwards counts. */
  get isReloading(): boolean {
    return this.#isReloading;
  }

  /** Finds the program. Errors: KEEPALIVED_MISSING, KEEPALIVED_VERSION. */
  async findProgram(): Promise<void> {
    this.#program = await keepalivedProgram(this.#options.settings.keepalived);
  }

  /**
   * Finds out which keepalived runs now: adopts a new one, and removes the addresses that an ended one has left. `text`
   * is that of keepalived.conf. Errors: FILE_READ, COMMAND_FAILED.
   */
  async refresh(text = ''): Promise<void> {
    const { states, metrics } = this.#options;
    const before = this.pid;
    const hasEnded = await this.#process.refresh();
    if (hasEnded) {
      this.#hasLeftovers = true;
      metrics.repaired('keepalived');
      states.lost(new Date());
    }
    if (this.pid !== before) {
      this.#isVerified = false;
      this.#doesCountForgeries = undefined;
      if (this.pid !== 0) await this.#adopt(this.pid, text);
    }
    if (this.pid === 0 && this.#hasLeftovers) await this.#removeLeftovers(text);
    this.#hasLeftovers = false;
  }

  /** True if another keepalived runs than at the last refresh(), or none. Errors: FILE_READ. */
  async hasChanged(): Promise<boolean> {
    const { paths } = this.#options;
    if (this.pid === 0) return (await keepalivedPid(paths)) !== undefined;
    return !(await runsWith(this.pid, paths.config));
  }

  /** The process that speaks VRRP; undefined if there is none. */
  readonly vrrpProcess = (): Promise<number | undefined> => vrrpProcess(this.pid);

  /**
   * A second keepalived gets no changes and keeps withdrawn VIPs. It is only reported, because the process that has
   * started it may start it again. Errors: as secondKeepalived().
   */
  async checkForSecond(): Promise<void> {
    const before = this.fault;
    this.#second = this.pid === 0 ? [] : await secondKeepalived(this.#options.paths, this.pid);
    if (this.fault === before) return;
    if (this.fault === '') this.#options.log.info('There is one keepalived again');
    else this.#options.log.error(this.fault);
  }

  /** keepalived.conf has changed, or a file that only a reload opens again. */
  needsReload(): void {
    this.#isVerified = false;
  }

  /** Resolves when keepalived has the state of `text`. Errors: KEEPALIVED_MISSING, KEEPALIVED_START, KEEPALIVED_RELOAD. */
  async start(text: string): Promise<void> {
    const isReady = this.#firstNotification();
    await this.#process.start({ version: this.version });
    await isReady;
    await this.#verify(text);
  }

  /**
   * Resolves when keepalived has the state of `text`. `isHidden`: its state does not show what is new in it, so that the
   * notification at the end of the reload counts. Errors: KEEPALIVED_START, KEEPALIVED_RELOAD.
   */
  async reload(text: string, isHidden = false): Promise<void> {
    const { metrics } = this.#options;
    this.#isReloading = true;
    try {
      const isDone = isHidden ? this.#firstNotification() : undefined;
      signalKeepalived(this.pid, 'SIGHUP');
      await isDone;
      await this.#verify(text);
      metrics.keepalivedReloaded('done');
    } catch (error) {
      metrics.keepalivedReloaded('failed');
      throw error;
    } finally {
      this.#isReloading = false;
    }
  }

  /** The state of keepalived; undefined if it does not run or does not answer. Never rejects. */
  readonly readDump = async (): Promise<readonly InstanceDump[] | undefined> => {
    const dump = await this.#dumps.read(this.pid, this.#program.dumpSignal);
    if (dump !== undefined) this.#doesCountForgeries = dump.every(({ forgeries }) => forgeries !== undefined);
    return dump;
  };

  /** Reads the state; false if keepalived does not run or does not answer. Never rejects. */
  async readStates(): Promise<boolean> {
    const dump = await this.readDump();
    if (dump !== undefined) this.#options.states.update(dump);
    return dump !== undefined;
  }

  /** Reads the state and compares it with the text of keepalived.conf: the difference as half a sentence, or ''. */
  async compare(text: string): Promise<string> {
    const dump = await this.readDump();
    if (dump !== undefined) this.#options.states.update(dump);
    const difference = dump === undefined ? NO_ANSWER : differenceOf(dump, text);
    this.#isVerified = difference === '';
    return difference;
  }

  /** Removes VIPs of which this host is backup, which another process has put here. Errors: COMMAND_FAILED. */
  async removeForeign(): Promise<void> {
    const { settings, paths } = this.#options;
    this.#removed(
      'Removed VIPs of the other host',
      await removeForeign(settings.netns, this.readDump, paths),
    );
  }

  /** keepalived has written to its FIFO. */
  notified(): void {
    this.#onNotified();
  }

  /** Kills it; its addresses stay on the interfaces. */
  async kill(): Promise<void> {
    await killKeepalived(this.pid, await this.vrrpProcess(), this.#options.paths);
  }

  /** Stops a keepalived that was started here, in order. */
  async stop(): Promise<void> {
    if (this.#process.hasStarted) await this.#process.end();
  }

  async #adopt(pid: number, text: string): Promise<void> {
    if ((await ageOf(pid)) < READY_AGE_MS) await this.#firstNotification();
    const difference = await this.compare(text);
    this.#options.log.info('Adopted the keepalived that runs', { pid, difference });
  }

  /** Resolves when keepalived has the state of `text`. Errors: KEEPALIVED_RELOAD. */
  async #verify(text: string): Promise<void> {
    let difference = NO_ANSWER;
    for (const until = performance.now() + RELOAD_TIMEOUT_MS; performance.now() < until; ) {
      // The first wait as well: right after the signal keepalived still gives its old state.
      await sleep(RELOAD_POLL_INTERVAL_MS);
      const dump = await this.readDump();
      difference = dump === undefined ? NO_ANSWER : differenceOf(dump, text);
      if (dump === undefined || difference !== '') continue;
      this.#options.states.update(dump);
      this.#isVerified = true;
      return;
    }
    throw new HeadgateError('KEEPALIVED_RELOAD', `keepalived does not match keepalived.conf: ${difference}`);
  }

  /**
   * Resolves when keepalived notifies a state, which shows that it is ready for signals: an earlier signal would end it.
   * Resolves after READY_AGE_MS in any case, because there may be no state to notify.
   */
  #firstNotification(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onNotified = resolve;
    systemClock.after(READY_AGE_MS, resolve);
    return promise;
  }

  async #removeLeftovers(text: string): Promise<void> {
    const { settings, paths } = this.#options;
    const count = await removeLeftovers(settings.netns, heldIn(text), paths);
    this.#removed('Removed addresses of a keepalived that has ended', count);
  }

  #removed(message: string, count: number): void {
    const { metrics, log } = this.#options;
    if (count === 0) return;
    metrics.repaired('stale-vips');
    log.warn(message, { count });
  }
}
