// Carries out one reload: prepares the candidate, writes the file, orders the master to reload, and takes the new worker
// when it serves exactly that file. After a refused reload the old worker continues, and the last good file is restored.
// Why: docs/design/decisions/0023-little-work-during-a-reload.md

import { sleep } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { logSince, logSize } from '../../host/daemon-output.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { Candidate } from '../config/candidate.ts';
import type { ConfigParts } from '../config/config-parts.ts';
import type { Phase } from '../instance/connect.ts';
import { orderReload, proveRestart } from '../instance/order-reload.ts';
import { residentMemory } from '../instance/process.ts';
import type { HaproxyPaths } from '../paths.ts';
import { type ReloadOutcome, showProc } from '../socket/master.ts';
import type { ReloadCause, ReloadResult } from './reload-arbiter.ts';
import { forgetServerStates, keepServerStates } from './server-states.ts';
import type { StartFaults } from './start-faults.ts';
import { tablesLearned } from './table-sync.ts';
import type { Expected, WorkerFinder } from './worker-finder.ts';

export interface ReloaderOptions {
  readonly paths: HaproxyPaths;
  readonly config: Pick<ConfigParts, 'file' | 'maker' | 'persister'>;
  readonly finder: WorkerFinder;
  readonly faults: StartFaults;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly workers: ReloadedWorkers;
  readonly hooks: ReloaderHooks;
  readonly log: Log;
}

export interface ReloadedWorkers {
  /** Gets the commands now. */
  readonly active: () => BootedWorker | undefined;
  /** The worker of another HAProxy, which may have checked the same members. */
  readonly otherWorker: () => BootedWorker | undefined;
  /** Makes the new worker the active one. */
  readonly take: (next: BootedWorker) => void;
}

export interface ReloaderHooks {
  /** The descriptors that the last candidate needs and HAProxy lacks; '' if it has enough. */
  readonly shortage: () => string;
  /** Reads what the worker forgets when it is replaced. */
  readonly beforeOrder: (worker: BootedWorker) => Promise<void>;
  readonly onReload: (causes: ReadonlySet<ReloadCause>, result: 'done' | 'failed') => void;
}

const NEW_WORKER_TIMEOUT_MS = 10_000;
/** The new worker cannot answer earlier than this after the order to reload. */
const FIRST_LOOK_MS = 20;
const POLL_INTERVAL_MS = 5;
/** Before the master has read the file, only each tenth look connects to the worker. */
const LOOKS_PER_CONNECTION = 10;

/** These reload even if the file is the same, because the worker itself must be replaced. */
const FORCED: readonly ReloadCause[] = [
  'repair',
  'socket-lost',
  'adopted',
  'server-renumbered',
  'server-changed',
  'certificate-too-long',
];

/** A reload under way. */
interface Replacement {
  readonly candidate: Candidate;
  readonly oldPid: number;
  /** The master's socket before the order. */
  readonly oldSocket: FileIdentity | undefined;
  /** The state of the new worker, computed while it boots. */
  expected?: Expected;
  /** The new worker serves. */
  isTaken: boolean;
  /** The master has reported the end of the reload. */
  isOver: boolean;
}

export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #fault = new Fault();
  #next: ReadonlyMap<string, LoadBalancer> | undefined;

  constructor(options: ReloaderOptions) {
    this.#options = options;
  }

  /** Why the last reload failed; '' if it did not. */
  get fault(): string {
    return this.#fault.text;
  }

  /** The load balancers of the reload that is under way; undefined if there is none. */
  get next(): ReadonlyMap<string, LoadBalancer> | undefined {
    return this.#next;
  }

  /** Never rejects. */
  async reload(causes: ReadonlySet<ReloadCause>): Promise<ReloadResult> {
    const worker = this.#options.workers.active();
    if (worker === undefined) return this.#leave();
    const { config, desired, hooks, log } = this.#options;
    const { maker, file, persister } = config;
    const isLost = (): boolean => this.#options.workers.active() !== worker;
    try {
      await proveRestart(this.#options.paths);
      await tablesLearned(worker);
      await file.keepBeside();
      this.#next = new Map(desired);
      const candidate = await maker.prepare(this.#next, worker.booted);
      await persister.idle();
      if (isLost()) return this.#leave();
      await file.write(candidate.chunks);
      persister.worked();
      if (isLost()) return this.#leave();
      if (candidate.structure === worker.structure && !FORCED.some((cause) => causes.has(cause))) {
        this.#fault.clear();
        maker.globalAccepted();
        return 'unneeded';
      }
      const began = performance.now();
      const result = await this.#replace(worker, candidate);
      if (result === 'done') {
        const ms = Math.round(performance.now() - began);
        log.info('Reloaded HAProxy', {
          causes: [...causes],
          worker: this.#options.workers.active()?.runtime.worker.pid,
          ms,
        });
      }
      hooks.onReload(causes, result);
      return result;
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'FILE_WRITE') {
        persister.failed(error);
        return 'again';
      }
      hooks.onReload(causes, 'failed');
      const failure = { causes: [...causes], error: messageOf(error) };
      if (isLost()) {
        log.info('Lost HAProxy during a reload', failure);
        return this.#leave();
      }
      if (this.#fault.set(failure.error)) log.error('Cannot reload HAProxy', failure);
      return 'failed';
    } finally {
      this.#next = undefined;
    }
  }

  /** 0 within the budget; 1 more for each draining worker above it, and for each further share of memory (bytes). */
  async pressure({ most, memory }: { readonly most: number; readonly memory: number }): Promise<number> {
    try {
      const { oldWorkers } = await showProc(this.#options.paths.masterSocket);
      const sizes = await Promise.all(oldWorkers.map(({ pid }) => residentMemory(pid)));
      const used = sizes.reduce((sum, size) => sum + size, 0);
      return Math.max(0, oldWorkers.length - most + 1) + Math.floor(used / memory);
    } catch {
      return 0;
    }
  }

  /** Without a worker there is nothing to reload: the next one starts with the desired state. */
  #leave(): 'done' {
    this.#fault.clear();
    return 'done';
  }

  async #replace(worker: BootedWorker, candidate: Candidate): Promise<'done' | 'failed'> {
    const { paths, config, faults, hooks, log } = this.#options;
    const { file, maker, persister } = config;
    const from = await logSize(paths.log);
    const oldPid = worker.runtime.worker.pid;
    const oldSocket = identityOf(paths.masterSocket);
    const replacement: Replacement = { candidate, oldPid, oldSocket, isTaken: false, isOver: false };
    const early = this.#takeEarly(replacement);
    early.catch(() => undefined);
    let result: ReloadOutcome;
    try {
      result = await this.#withServerStates(worker, candidate, () =>
        orderReload(paths, { isServed: () => replacement.isTaken, log }),
      );
    } finally {
      replacement.isOver = true;
    }
    const isTaken = await early;
    if (!result.ok && !isTaken) {
      const output = result.log || (await logSince(paths.log, from));
      log.error('HAProxy refused the reload; the old worker continues', { log: output.slice(-2_000) });
      const needs = hooks.shortage();
      maker.refused(worker.booted);
      const isNamed = faults.rejectNamed(output, candidate, worker.booted);
      if (!isNamed) maker.globalRefused(candidate.loadBalancers);
      await file.restoreLastGood();
      this.#fault.set(isNamed ? '' : `HAProxy refused the last reload; see the log${needs && `. ${needs}`}`);
      return 'failed';
    }
    if (!isTaken) await this.#takeReloaded(replacement);
    maker.globalAccepted();
    this.#fault.clear();
    await file.keepAsLastGood().catch((error: unknown) => persister.failed(error));
    return 'done';
  }

  /**
   * Takes the new worker as soon as it answers, because until then it lacks the changes since its file was written; the
   * master of 2.6 answers up to 50 ms later. False if the reload ended first. A look that connects to the worker costs it
   * time, so most looks only check whether the master has created its socket again, which it does after it read the file.
   */
  async #takeEarly(replacement: Replacement): Promise<boolean> {
    const { finder, paths } = this.#options;
    await sleep(FIRST_LOOK_MS);
    replacement.expected = await finder.expect(replacement.candidate); // while HAProxy reads its file
    let isNear = false;
    for (let looks = 1; !replacement.isOver; looks++) {
      isNear ||= !isSameFile(identityOf(paths.masterSocket), replacement.oldSocket);
      if ((isNear || looks % LOOKS_PER_CONNECTION === 0) && (await this.#isTaken(replacement, 'starting')))
        return true;
      await sleep(POLL_INTERVAL_MS);
    }
    return false;
  }

  /** A reload counts only when a new worker serves the new file. */
  async #takeReloaded(replacement: Replacement): Promise<void> {
    const until = performance.now() + NEW_WORKER_TIMEOUT_MS;
    while (performance.now() < until) {
      if (await this.#isTaken(replacement, 'running')) return;
      await sleep(POLL_INTERVAL_MS);
    }
    throw new HeadgateError(
      'HAPROXY_RELOAD',
      'HAProxy reports a successful reload, but no worker serves the new file',
    );
  }

  async #isTaken(replacement: Replacement, phase: Phase): Promise<boolean> {
    const { candidate, oldPid, expected } = replacement;
    const { finder, workers } = this.#options;
    const next = await finder.find(candidate, phase, expected);
    if (next !== undefined && next.runtime.worker.pid !== oldPid) {
      workers.take(next);
      replacement.isTaken = true;
      return true;
    }
    next?.runtime.close();
    return false;
  }

  /** Members that are down stay down in the new worker; a failure here does not prevent the reload. */
  async #withServerStates<T>(
    worker: BootedWorker,
    { loadBalancers }: Candidate,
    order: () => Promise<T>,
  ): Promise<T> {
    const { paths, workers: all, hooks, log } = this.#options;
    const workers = [worker, all.otherWorker()].filter((each) => each !== undefined);
    const warn = (error: unknown): void =>
      log.warn('Members that are down may get traffic after the reload, until the next checks', {
        error: messageOf(error),
      });
    await keepServerStates(workers, loadBalancers, paths).catch(warn);
    await hooks
      .beforeOrder(worker)
      .catch((error: unknown) =>
        log.warn('Cannot read the counts of routes before a reload', { error: messageOf(error) }),
      );
    try {
      return await order();
    } finally {
      await forgetServerStates(paths).catch(warn);
    }
  }
}
