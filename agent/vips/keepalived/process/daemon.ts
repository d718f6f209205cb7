// The keepalived that runs, as far as it is known: found or started, told to read its file, asked what it has, ended
// where it hangs. What it should have comes in as the text of its file.

import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError } from '../../../base/errors.ts';
import { runsWith } from '../../../host/detached-process.ts';
import type { Log } from '../../../host/log.ts';
import { awaitText } from '../apply.ts';
import { heldIn } from '../config/config-text.ts';
import { differenceOf } from '../config/difference.ts';
import type { KeepalivedMetrics } from '../metrics.ts';
import type { KeepalivedPaths } from '../paths.ts';
import type { InstanceDump } from '../states/dump.ts';
import type { VrrpStates } from '../states/vrrp-states.ts';
import { Question } from './ask.ts';
import { findKeepalived, secondKeepalived, vrrpProcess } from './find-keepalived.ts';
import { removeIntruders, removeLeftovers } from './leftovers.ts';
import {
  ageOf,
  endKeepalived,
  type KeepalivedProgram,
  keepalivedPid,
  keepalivedProgram,
  signalKeepalived,
  startKeepalived,
  stopKeepalived,
} from './process.ts';

export interface DaemonOptions {
  readonly executable: string;
  /** `external`: something else starts keepalived and starts it again. */
  readonly supervisor: 'agent' | 'external';
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly paths: KeepalivedPaths;
  /** Told of all that keepalived says when it is asked. */
  readonly states: VrrpStates;
  /** One that was started here has ended. */
  readonly onExit: () => void;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
}

/** Milliseconds in which a keepalived may not be ready for signals. */
const YOUTH = 1_000;

export class Daemon {
  readonly #options: DaemonOptions;
  readonly #question: Question;
  #program: KeepalivedProgram = { version: '', dumpSignal: 0 };
  #pid = 0;
  #isVerified = false;
  #isReloading = false;
  #hasStarted = false;
  /** What the last keepalived has left on the interfaces may still be there. */
  #isUnswept = true;
  /** Processes of another one with the same files. */
  #second: readonly number[] = [];
  #onSpoken: () => void = () => undefined;

  constructor(options: DaemonOptions) {
    this.#options = options;
    this.#question = new Question(options.paths);
  }

  /** '' until it is known. */
  get version(): string {
    return this.#program.version;
  }

  /** 0 where it does not run. */
  get pid(): number {
    return this.#pid;
  }

  /** Whether it is known to have what stands in its file. */
  get isVerified(): boolean {
    return this.#isVerified;
  }

  /** '' where it is the only one. */
  get fault(): string {
    const pids = this.#second.join(' ');
    return pids && `A second keepalived runs with the same files: end it by "kill -KILL ${pids}"`;
  }

  /** Until 2.4 the FIFO may tell a wrong state at a reload; what keepalived says afterwards counts. */
  get isReloading(): boolean {
    return this.#isReloading;
  }

  /** Looks for the program. Errors: KEEPALIVED_MISSING, KEEPALIVED_VERSION. */
  async find(): Promise<void> {
    this.#program = await keepalivedProgram(this.#options.executable);
  }

  /** Finds out whether it is still the one that it was; what one that is gone has left on the interfaces is taken away. */
  async notice(text: string | undefined): Promise<void> {
    const { states, metrics, log } = this.#options;
    const [before, now] = [this.#pid, await this.#current()];
    if (now !== before) {
      this.#pid = now;
      this.#isVerified = false;
      if (before !== 0) {
        this.#isUnswept = true;
        log.error('keepalived has ended', { pid: before });
        metrics.repaired('keepalived');
        states.lost(new Date());
      }
      if (now !== 0) await this.#meet(now, text);
    }
    if (now === 0 && this.#isUnswept) await this.#sweep(heldIn(text ?? ''));
    this.#isUnswept = false;
  }

  /** Whether another one runs than was noticed last, or none any more. Errors: FILE_READ if that cannot be told. */
  async isAnother(): Promise<boolean> {
    const { paths } = this.#options;
    if (this.#pid === 0) return (await keepalivedPid(paths)) !== undefined;
    return !(await runsWith(this.#pid, paths.config));
  }

  /** The process that speaks VRRP; undefined if there is none. */
  readonly vrrpProcess = (): Promise<number | undefined> => vrrpProcess(this.#pid);

  /**
   * One that somebody has started in the same moment hears of no change, and keeps VIPs that are none any more. It is
   * not ended here: whoever has started it may start it again.
   */
  async lookForSecond(): Promise<void> {
    const before = this.fault;
    this.#second = this.#pid === 0 ? [] : await secondKeepalived(this.#options.paths, this.#pid);
    if (this.fault === before) return;
    if (this.fault === '') this.#options.log.info('There is one keepalived again');
    else this.#options.log.error(this.fault);
  }

  /** Its file has changed. */
  doubt(): void {
    this.#isVerified = false;
  }

  /** Returns once it has what the text of its file says. Errors: KEEPALIVED_START, KEEPALIVED_RELOAD and others. */
  async start(text: string): Promise<void> {
    const { executable, supervisor, netns, paths, states, onExit, log } = this.#options;
    if (supervisor === 'external')
      throw new HeadgateError('KEEPALIVED_START', 'keepalived does not run', { retry: 'later' });
    const spoken = this.#hasSpoken();
    // From now on there may be one, also where nobody waits any longer until it is there.
    this.#hasStarted = true;
    const child = await startKeepalived(executable, netns, paths);
    child.once('exit', onExit);
    this.#pid = (await findKeepalived(paths)) ?? 0;
    log.info('Started keepalived', { pid: this.#pid, version: this.version });
    await spoken;
    states.told(await awaitText(text, this.ask));
    this.#isVerified = true;
  }

  /** Returns once it has what the text of its file says. Errors: KEEPALIVED_RELOAD. */
  async reload(text: string): Promise<void> {
    const { states, metrics } = this.#options;
    this.#isReloading = true;
    try {
      signalKeepalived(this.#pid, 'SIGHUP');
      states.told(await awaitText(text, this.ask));
      this.#isVerified = true;
      metrics.keepalivedReloaded('done');
    } catch (error) {
      metrics.keepalivedReloaded('failed');
      throw error;
    } finally {
      this.#isReloading = false;
    }
  }

  /** undefined where it does not run or does not answer. Never rejects. */
  readonly ask = (): Promise<readonly InstanceDump[] | undefined> =>
    this.#question.ask(this.#pid, this.#program.dumpSignal);

  /** Has it tell its state, and compares what it has with the text of its file; what differs, in words. */
  async tell(text: string): Promise<string> {
    const dump = await this.ask();
    if (dump !== undefined) this.#options.states.told(dump);
    const difference = dump === undefined ? 'it does not answer' : differenceOf(dump, text);
    this.#isVerified = difference === '';
    return difference;
  }

  /** What keepalived does not hold as backup this host must not answer for. Errors: COMMAND_FAILED. */
  async sweepBackup(): Promise<void> {
    const { netns, paths, metrics, log } = this.#options;
    const count = await removeIntruders(netns, this.ask, paths);
    if (count === 0) return;
    metrics.repaired('stale-vips');
    log.warn('Took away VIPs of the other host that somebody had put on this one', { count });
  }

  /** It has written to its FIFO. */
  spoke(): void {
    this.#onSpoken();
  }

  /** Ends it at once; what it holds stays on the interfaces. */
  async end(): Promise<void> {
    await endKeepalived(this.#pid, await this.vrrpProcess(), this.#options.paths);
  }

  /** Ends the one that was started here, in order. */
  async stop(): Promise<void> {
    if (this.#hasStarted) await stopKeepalived(await this.#current(), this.#options.paths);
  }

  /** The pid of the one that runs, 0 for none: one that lives is not looked for, whatever its pid file says. */
  async #current(): Promise<number> {
    const { paths } = this.#options;
    if (await runsWith(this.#pid, paths.config)) return this.#pid;
    return (await findKeepalived(paths)) ?? 0;
  }

  /** Gets to know one that someone else has started. */
  async #meet(pid: number, text = ''): Promise<void> {
    if ((await ageOf(pid)) < YOUTH) await this.#hasSpoken();
    const difference = await this.tell(text);
    this.#options.log.info('Adopted the keepalived that runs', { pid, difference });
  }

  /**
   * Resolves once keepalived has notified a state, by which it shows that it is ready for signals: one that comes
   * earlier would end it. It gets a second, in case that there is nothing to tell.
   */
  #hasSpoken(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onSpoken = resolve;
    void delay(YOUTH, undefined, { ref: false }).then(resolve);
    return promise;
  }

  async #sweep(held: ReadonlySet<string>): Promise<void> {
    const { netns, paths, metrics, log } = this.#options;
    const count = await removeLeftovers(netns, held, paths);
    if (count === 0) return;
    metrics.repaired('stale-vips');
    log.warn('Took away addresses that a keepalived that is gone had left', { count });
  }
}
