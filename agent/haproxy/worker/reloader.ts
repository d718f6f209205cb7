// Carries out one reload: candidate, file, master, and the new worker seen to serve exactly that file. A refused
// reload leaves the old worker serving and the last good file in place.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { logSince, logSize } from '../../host/daemon-output.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { Candidate, CandidateMaker } from '../config/candidate.ts';
import type { ConfigFile } from '../config/config-file.ts';
import type { Persister } from '../config/persister.ts';
import type { HaproxyPaths } from '../paths.ts';
import { findMaster } from '../process/find-master.ts';
import { residentMemory } from '../process/process.ts';
import { type ReloadOutcome, reload, showProc, signalReload } from '../socket/master.ts';
import type { BootedWorker } from '../worker.ts';
import type { ReloadCause, ReloadResult } from './reload-arbiter.ts';
import { forgetServerStates, keepServerStates } from './server-states.ts';
import type { StartFaults } from './start-faults.ts';
import type { Expected, Phase, Supervisor } from './supervisor.ts';
import { tablesLearned } from './table-sync.ts';

export interface ReloaderOptions {
  readonly paths: HaproxyPaths;
  readonly maker: CandidateMaker;
  readonly supervisor: Supervisor;
  readonly faults: StartFaults;
  readonly file: ConfigFile;
  readonly persister: Persister;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  readonly worker: () => BootedWorker | undefined;
  readonly take: (next: BootedWorker) => void;
  readonly onReload: (causes: ReadonlySet<ReloadCause>, result: 'done' | 'failed') => void;
  readonly log: Log;
}

const HANDOVER_TIMEOUT = 10_000;
/** Milliseconds in which the order to reload is on its way, and between two looks for the worker that follows. */
const HEAD_START = 20;
const LOOK = 5;
/** Of so many looks one is for the worker itself while nothing speaks for it yet. */
const SELDOM = 10;

/** Reloads for these even where the file would be the same: the worker itself is what has to be replaced. */
const FORCED: readonly ReloadCause[] = [
  'repair',
  'socket-lost',
  'adopted',
  'server-renumbered',
  'server-changed',
];

/** One worker follows another. */
interface Succession {
  readonly candidate: Candidate;
  readonly oldPid: number;
  /** The master's, before the order. */
  readonly oldSocket: FileIdentity | undefined;
  /** What the new one will run, once it is made. */
  expected?: Expected;
  /** The new worker serves. */
  isTaken: boolean;
  /** The master has said how it ended. */
  isOver: boolean;
}

export class Reloader {
  readonly #options: ReloaderOptions;
  #fault = '';

  constructor(options: ReloaderOptions) {
    this.#options = options;
  }

  /** Why the last reload failed, '' where it did not. */
  get fault(): string {
    return this.#fault;
  }

  /** As `ArbiterOptions.reload` says. Never rejects. */
  async reload(causes: ReadonlySet<ReloadCause>): Promise<ReloadResult> {
    const worker = this.#options.worker();
    if (worker === undefined) return this.#leave();
    const { maker, file, persister, wanted, onReload, log } = this.#options;
    const isLost = (): boolean => this.#options.worker() !== worker;
    try {
      await tablesLearned(worker);
      await file.keepBeside();
      const candidate = await maker.prepare(wanted, worker.booted, ({ chunks }) => file.draft(chunks));
      await persister.idle();
      if (isLost()) return this.#leave();
      await file.write(candidate.chunks);
      persister.worked();
      if (isLost()) return this.#leave();
      if (candidate.structure === worker.structure && !FORCED.some((cause) => causes.has(cause))) {
        this.#fault = '';
        maker.tried(candidate.loadBalancers, true);
        return 'unneeded';
      }
      const began = performance.now();
      const isDone = await this.#replace(worker, candidate);
      if (isDone) {
        const [ms, pid] = [Math.round(performance.now() - began), this.#options.worker()?.runtime.worker.pid];
        log.info('Reloaded HAProxy', { causes: [...causes], worker: pid, ms });
      }
      onReload(causes, isDone ? 'done' : 'failed');
      return isDone;
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'FILE_WRITE') {
        persister.failed(error);
        return 'soon';
      }
      onReload(causes, 'failed');
      if (isLost()) {
        log.info('Lost HAProxy during a reload', { causes: [...causes], error: messageOf(error) });
        return this.#leave();
      }
      if (this.#fault !== messageOf(error))
        log.error('Cannot reload HAProxy', { causes: [...causes], error: messageOf(error) });
      this.#fault = messageOf(error);
      return false;
    }
  }

  /** 0 within the budget of old workers; 1 for each worker too many, and for each further share of memory. */
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

  /** Whoever gets hold of a worker next boots or adopts it by what is wanted then. */
  #leave(): true {
    this.#fault = '';
    return true;
  }

  async #replace(worker: BootedWorker, candidate: Candidate): Promise<boolean> {
    const { paths, file, maker, faults, log, persister } = this.#options;
    const from = await logSize(paths.log);
    const oldPid = worker.runtime.worker.pid;
    const oldSocket = identityOf(paths.masterSocket);
    const succession: Succession = { candidate, oldPid, oldSocket, isTaken: false, isOver: false };
    const early = this.#succeedEarly(succession);
    early.catch(() => undefined);
    let result: ReloadOutcome;
    try {
      result = await this.#withServerStates(worker, candidate, () => this.#ask(succession));
    } finally {
      succession.isOver = true;
    }
    const isTaken = await early;
    if (!result.ok && !isTaken) {
      const said = result.log || (await logSince(paths.log, from));
      log.error('HAProxy refused to reload, the old worker serves on', { log: said.slice(-2_000) });
      maker.refused(worker.booted);
      const isNamed = faults.rejectNamed(said, candidate, worker.booted);
      if (!isNamed) maker.tried(candidate.loadBalancers, false);
      await file.restoreLastGood();
      this.#fault = isNamed ? '' : 'HAProxy refused the last reload; see the log';
      return false;
    }
    if (!isTaken) await this.#succeed(succession);
    maker.tried(candidate.loadBalancers, true);
    this.#fault = '';
    await file.keepAsLastGood().catch((error: unknown) => persister.failed(error));
    return true;
  }

  /**
   * Takes the new worker as soon as it answers, which it does together with its first connection: until it is taken it
   * lacks what has changed since its file was written. The master of 2.6 executes itself once more before it answers: up
   * to 50 ms later where there are 10,000 servers. False where the end of the reload came first.
   * A look is a connection to a worker that has traffic to carry, while HAProxy reads its file on another processor; the
   * master makes its socket anew when it has read it, which costs nobody anything to see.
   */
  async #succeedEarly(succession: Succession): Promise<boolean> {
    const { supervisor, paths } = this.#options;
    await delay(HEAD_START);
    // While HAProxy reads its file.
    const expected = await supervisor.expect(succession.candidate);
    succession.expected = expected;
    let isNear = false;
    for (let looks = 1; !succession.isOver; looks++) {
      isNear ||= !isSameFile(identityOf(paths.masterSocket), succession.oldSocket);
      if ((isNear || looks % SELDOM === 0) && (await this.#isTaken(succession, 'starting'))) return true;
      await delay(LOOK);
    }
    return false;
  }

  /** A reload counts only once a new worker is seen to serve the new file. */
  async #succeed(succession: Succession): Promise<void> {
    const until = performance.now() + HANDOVER_TIMEOUT;
    while (performance.now() < until) {
      if (await this.#isTaken(succession, 'running')) return;
      await delay(LOOK);
    }
    throw new HeadgateError(
      'HAPROXY_RELOAD',
      'HAProxy says it has reloaded, but no worker serves the new file',
    );
  }

  async #isTaken(succession: Succession, phase: Phase): Promise<boolean> {
    const { candidate, oldPid, expected } = succession;
    const { supervisor, take } = this.#options;
    const next = await supervisor.find(candidate, phase, expected);
    if (next !== undefined && next.runtime.worker.pid !== oldPid) {
      take(next);
      succession.isTaken = true;
      return true;
    }
    next?.runtime.close();
    return false;
  }

  /** Members that are down stay so in the new worker; that this cannot be had is no reason not to reload. */
  async #withServerStates<T>(
    worker: BootedWorker,
    { loadBalancers }: Candidate,
    ask: () => Promise<T>,
  ): Promise<T> {
    const { paths, log } = this.#options;
    const warn = (error: unknown): void =>
      log.warn('Members that are down may be up after the reload until checks say otherwise', {
        error: messageOf(error),
      });
    // Somebody may have removed all of it.
    await makeFolder(dirname(paths.serverState), 0o711).catch(warn);
    await keepServerStates(worker, loadBalancers, paths).catch(warn);
    try {
      return await ask();
    } finally {
      await forgetServerStates(paths).catch(warn);
    }
  }

  async #ask(succession: Succession): Promise<ReloadOutcome> {
    const { masterSocket } = this.#options.paths;
    const isServed = (): boolean => succession.isTaken;
    if (existsSync(masterSocket)) return reload(masterSocket, { isServed });
    const pid = await findMaster(this.#options.paths);
    if (pid === undefined)
      throw new HeadgateError(
        'HAPROXY_RELOAD',
        'HAProxy has no master socket, and its master cannot be found',
      );
    return signalReload(pid, masterSocket, { isServed });
  }
}
