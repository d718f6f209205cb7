// Gets a HAProxy worker, however long it takes: adopts a running one, or starts HAProxy if that is the agent's task.

import { existsSync } from 'node:fs';
import { backoffMs } from '../../base/backoff.ts';
import { sleep } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { Candidate } from '../config/candidate.ts';
import type { ConfigParts } from '../config/config-parts.ts';
import { findMaster, hasListened, isBooting, otherMaster } from '../instance/find-master.ts';
import { startHaproxy } from '../instance/process.ts';
import type { HaproxyPaths } from '../paths.ts';
import type { StartFaults } from './start-faults.ts';
import type { WorkerFinder } from './worker-finder.ts';

export interface SupervisorOptions {
  readonly program: SupervisedProgram;
  readonly paths: HaproxyPaths;
  readonly config: Pick<ConfigParts, 'file' | 'maker' | 'persister'>;
  readonly finder: WorkerFinder;
  readonly faults: StartFaults;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly hooks: SupervisorHooks;
  readonly log: Log;
}

export interface SupervisedProgram {
  readonly executable: string;
  readonly netns: string;
  /** True if the agent starts HAProxy; false if systemd or another process does. */
  readonly isStartedHere: boolean;
}

export interface SupervisorHooks {
  readonly isReloading: () => boolean;
  readonly onRepair: (what: 'process' | 'socket') => void;
}

/** The fault before the end of the first attempt. */
const NOT_YET = 'HAProxy has not been reached yet';
const START_TIMEOUT_MS = 30_000;
/** The wait between two attempts to get a worker. */
const BACKOFF = { firstMs: 50, mostMs: 1_000 };
/** Attempts to start; each leaves out the load balancers for which the last was refused. */
const MAX_START_ATTEMPTS = 5;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #fault = new Fault(NOT_YET);
  #hasStarted = false;
  #isStarting = false;
  #closed = false;
  /** The attempts to get a worker. */
  #obtaining: Promise<unknown> = Promise.resolve();

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Why there is no worker; '' if there is one. */
  get fault(): string {
    return this.#fault.text;
  }

  /** True if this agent has started HAProxy, or is about to. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** HAProxy is about to read the file, which must not change now. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  close(): void {
    this.#closed = true;
  }

  /** After close(): HAProxy is not about to be started any more, or `mostMs` have passed. */
  async idle(mostMs: number): Promise<void> {
    await Promise.race([this.#obtaining, sleep(mostMs)]);
  }

  /** Tries until it has a worker; undefined only after close(). `onAttempt` is called after each failed attempt. */
  obtain(onAttempt: () => void | Promise<void>): Promise<BootedWorker | undefined> {
    const obtaining = this.#obtain(onAttempt);
    this.#obtaining = obtaining;
    return obtaining;
  }

  async #obtain(onAttempt: () => void | Promise<void>): Promise<BootedWorker | undefined> {
    const { finder, program, faults, config, log, hooks } = this.#options;
    await faults.begin();
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        const { paths } = this.#options;
        // One that ends still has its connections.
        const other = (await findMaster(paths)) === undefined ? await otherMaster(paths) : undefined;
        if (other !== undefined && !program.isStartedHere) throw otherFile(other.config, paths);
        const adopted = other === undefined ? await finder.adopt() : undefined;
        const worker = adopted ?? (await this.#startIfDue(attempt, other));
        if (worker !== undefined) {
          if (this.#fault.text !== NOT_YET) hooks.onRepair('process');
          this.#fault.clear();
          faults.end();
          // A failure to write shows at the file itself.
          if (worker.structure !== '') void config.file.keepAsFirstGood().catch(() => undefined);
          return worker;
        }
        if (this.#fault.text === NOT_YET) this.#fault.set('HAProxy is not running');
        if (!program.isStartedHere) this.#fault.set((await faults.readOutput()) || this.#fault.text);
      } catch (error) {
        const reason = messageOf(error);
        if (this.#fault.set(reason)) log.error('Cannot start or reach HAProxy', { error: reason });
      }
      await onAttempt();
      await sleep(backoffMs(attempt + 1, BACKOFF));
    }
    return undefined;
  }

  /** The worker was lost; `why` is the fault until there is another. */
  lose(why: string): void {
    this.#fault.set(why);
  }

  /**
   * Starts HAProxy with all load balancers that it accepts; with the present file if it cannot be written; with the last
   * good file if HAProxy refuses the file and no load balancer is at fault.
   * Errors: HAPROXY_MISSING; HAPROXY_START if it does not serve in the end; FILE_WRITE.
   */
  async #startAny(): Promise<BootedWorker> {
    const { config, desired, faults } = this.#options;
    const { maker, file } = config;
    let candidate = await maker.prepareUnchecked(desired);
    for (let attempt = 1; ; attempt++) {
      try {
        await file.write(candidate.chunks);
        return await this.#start(candidate);
      } catch (error) {
        if (error instanceof HeadgateError && error.code === 'FILE_WRITE')
          return this.#startWithPresentFile(error);
        // A HAProxy that is slow to start may be found at the next attempt.
        if (!(error instanceof HeadgateError) || error.code !== 'HAPROXY_START' || error.retry === 'now')
          throw error;
        faults.note(messageOf(error));
        const isNamed = faults.rejectNamed(error.message, candidate, new Map());
        const next = await maker.prepare(desired, new Map()).catch((fault: unknown) => {
          if (fault instanceof HeadgateError && fault.code === 'HAPROXY_REJECTED') return fault;
          throw fault;
        });
        if (next instanceof HeadgateError) return this.#startWithLastGood(candidate, next);
        const isOther = isNamed || next.structure !== candidate.structure;
        if (!isOther || attempt >= MAX_START_ATTEMPTS) return this.#startWithLastGood(candidate, error);
        candidate = next;
      }
    }
  }

  /** `other`: a master with another file, which ends when the new one serves, so that no connection is refused. */
  async #startIfDue(
    attempt: number,
    other: { readonly pid: number; readonly config: string } | undefined,
  ): Promise<BootedWorker | undefined> {
    const { program, config, paths, log } = this.#options;
    if (!program.isStartedHere || (await this.#wake(attempt)) || this.#closed) return undefined;
    if (other !== undefined)
      log.warn('HAProxy runs with another file, such as that of another stateDir: starts it again', {
        master: other.pid,
        file: other.config,
        own: paths.config,
      });
    // Set before the start, because HAProxy may come up after the attempt has timed out.
    this.#hasStarted = true;
    this.#isStarting = true;
    await config.persister.idle();
    const worker = await this.#startAny().finally(() => {
      this.#isStarting = false;
    });
    log.info('Started HAProxy', { worker: worker.runtime.worker.pid });
    // Its connections continue.
    if (other !== undefined) process.kill(other.pid, 'SIGUSR1');
    return worker;
  }

  /**
   * True if a master runs although its sockets were removed: a second HAProxy must not start beside it. Reloads such a
   * master by signal, after which it creates its socket again.
   */
  async #wake(attempt: number): Promise<boolean> {
    const { paths, hooks, log } = this.#options;
    const pid = await findMaster(paths);
    if (pid === undefined) return isBooting(paths);
    const isGone = attempt % 4 === 3 && !hooks.isReloading() && !existsSync(paths.masterSocket);
    if (isGone && (await hasListened(pid, paths))) {
      log.warn('HAProxy runs but its sockets were removed: reloading it by signal', { master: pid });
      process.kill(pid, 'SIGUSR2');
      hooks.onRepair('socket');
    }
    return true;
  }

  /** For a refusal that is no load balancer's fault: an older configuration is better than none. */
  async #startWithLastGood(candidate: Candidate, why: HeadgateError): Promise<BootedWorker> {
    const { maker, file } = this.#options.config;
    maker.globalRefused(candidate.loadBalancers);
    if (!(await file.restoreLastGood())) throw why;
    return this.#startFile();
  }

  async #startWithPresentFile(why: HeadgateError): Promise<BootedWorker> {
    const { paths, config } = this.#options;
    if (!existsSync(paths.config)) throw why;
    // HAProxy starts with an older one.
    config.persister.failed(why);
    return this.#startFile();
  }

  async #startFile(): Promise<BootedWorker> {
    const { program, paths, finder, log } = this.#options;
    const { executable, netns } = program;
    log.warn('Starting HAProxy with the present file', { path: paths.config });
    return startHaproxy(executable, paths, () => finder.adopt('starting'), START_TIMEOUT_MS, netns);
  }

  async #start(candidate: Candidate): Promise<BootedWorker> {
    const { program, paths, finder, config } = this.#options;
    const { executable, netns } = program;
    const find = (): Promise<BootedWorker | undefined> => finder.find(candidate, 'starting');
    const worker = await startHaproxy(executable, paths, find, START_TIMEOUT_MS, netns);
    config.maker.accept(candidate.loadBalancers);
    return worker;
  }
}

/** The error for a HAProxy that another program has started, and must start again. */
function otherFile(file: string, { config }: HaproxyPaths): HeadgateError {
  return new HeadgateError(
    'HAPROXY_START',
    `HAProxy runs with -f "${file}", and this agent writes "${config}": start it again`,
  );
}
