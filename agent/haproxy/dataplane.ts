// The HAProxy dataplane: holds the worker that serves now, turns changed load balancers into plans for it, applies
// them, and reloads behind the scenes where commands are not enough. Comes back by itself from whatever happens to
// HAProxy, its sockets or its files.

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError, messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Listener, LoadBalancer, Problem } from '../model.ts';
import { AclIds } from './acl-ids.ts';
import { applyPlans, type Outcome } from './apply.ts';
import { audit } from './audit.ts';
import { probeBind } from './bind-probe.ts';
import { CandidateMaker } from './candidate.ts';
import { keyOfListener } from './check.ts';
import { ConfigFile } from './config-file.ts';
import { configText, inFileOrder } from './config-text.ts';
import { fileLimit, maxConnections, needsOf } from './limits.ts';
import { isServed } from './listener-config.ts';
import { type ReloadOutcome, reload, showProc, signalReload } from './master.ts';
import { type Plan, planLoadBalancer } from './plan.ts';
import {
  type HaproxyPaths,
  haproxyPaths,
  logSince,
  logSize,
  masterPid,
  residentMemory,
  stopHaproxy,
  trimLog,
} from './process.ts';
import { haproxyVersion } from './program.ts';
import { Quarantine } from './quarantine.ts';
import { parseInfo } from './readings.ts';
import { Reaper } from './reaper.ts';
import { ReloadArbiter, type ReloadCause } from './reload-arbiter.ts';
import { type RenderContext, renderContext } from './render-context.ts';
import type { RunningServer } from './running.ts';
import { type ServingWorker, Supervisor } from './supervisor.ts';

export interface HaproxySettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly haproxy: string;
  readonly haproxySupervisor: 'agent' | 'external';
  readonly haproxyUser: string;
  readonly haproxyGroup: string;
  readonly maxConnections: number;
  readonly threads: number;
  readonly drainTimeout: number;
  readonly hardStopAfter: number;
  readonly reloadInterval: number;
  readonly maxOldWorkers: number;
  readonly oldWorkerMemory: number;
  readonly auditInterval: number;
}

/** What the dataplane tells about itself; counters only go up. */
export interface HaproxyMetrics {
  commandsAcknowledged(kind: string): void;
  commandRefused(kind: string): void;
  repaired(what: 'listener' | 'audit' | 'file' | 'process' | 'worker' | 'socket'): void;
  reloaded(cause: ReloadCause, result: 'done' | 'failed'): void;
  persisted(result: 'done' | 'failed'): void;
}

export interface HaproxyStatus {
  readonly version: string;
  readonly workerPid: number;
  readonly serving: boolean;
  readonly reloadPending: readonly string[];
  readonly serversToDelete: number;
  readonly rejected: number;
  readonly blocked: readonly string[];
  /** What is wrong now, '' where nothing is. */
  readonly fault: string;
  readonly persistFault: string;
  readonly maxConnections: number;
}

export interface HaproxyOptions {
  readonly settings: HaproxySettings;
  /** The desired state; read here, written by the loop. */
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** Asks the loop to plan these again. */
  readonly replan: (keys: Iterable<string>) => void;
  readonly metrics: HaproxyMetrics;
  readonly log: Log;
}

const HEARTBEAT = 1_000;
const PROBE_EVERY = 5;
const TRIM_EVERY = 60;
const LOG_SIZE = 1024 * 1024;
const PERSIST_AFTER = 300;
const HANDOVER_TIMEOUT = 10_000;

export class HaproxyDataplane {
  readonly #options: HaproxyOptions;
  #settings: HaproxySettings;
  readonly #paths: HaproxyPaths;
  readonly #file: ConfigFile;
  readonly #aclIds = new AclIds();
  readonly #quarantine = new Quarantine();
  readonly #maker: CandidateMaker;
  readonly #supervisor: Supervisor;
  readonly #arbiter: ReloadArbiter;
  #worker: ServingWorker | undefined;
  /** `address port` of what the worker listens on. */
  #bound: ReadonlySet<string> = new Set();
  #reaper: Reaper | undefined;
  #obtaining: Promise<void> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #persistTimer: NodeJS.Timeout | undefined;
  #persisting: Promise<void> = Promise.resolve();
  #beats = 0;
  #lastAudit = 0;
  #auditFrom = 0;
  #fault = '';
  #persistFault = '';
  #limitProblem = '';
  #maxConnections = 0;
  #closed = false;

  constructor(options: HaproxyOptions) {
    const { settings, wanted, log } = options;
    this.#options = options;
    this.#settings = settings;
    this.#paths = haproxyPaths(settings.stateDir, settings.runtimeDir);
    this.#file = new ConfigFile(this.#paths.config);
    this.#maker = new CandidateMaker({
      executable: settings.haproxy,
      scratchFile: `${this.#paths.config}.candidate`,
      quarantine: this.#quarantine,
      context: this.#context,
      mayProbe: (address, port) => !this.#bound.has(`${address} ${port}`),
      ignoreAccess: settings.haproxySupervisor === 'external',
    });
    this.#supervisor = new Supervisor({
      executable: settings.haproxy,
      paths: this.#paths,
      maker: this.#maker,
      quarantine: this.#quarantine,
      file: this.#file,
      context: this.#context,
      wanted,
      log,
    });
    this.#arbiter = new ReloadArbiter({
      interval: settings.reloadInterval,
      reload: (causes) => this.#reload(causes),
      pressure: () => this.#pressure(),
    });
  }

  /**
   * Makes the folders, checks the version, and gets hold of a worker. Where none can be had yet it goes on trying in
   * the background. Errors: HAPROXY_MISSING, HAPROXY_VERSION, FILE_WRITE.
   */
  async start(): Promise<void> {
    const { config, adminSocket } = this.#paths;
    await mkdir(dirname(config), { recursive: true, mode: 0o700 });
    await mkdir(dirname(adminSocket), { recursive: true, mode: 0o700 });
    await haproxyVersion(this.#settings.haproxy);
    this.#heartbeat = setInterval(() => void this.#beat(), HEARTBEAT);
    await this.#obtain();
  }

  /** Plans for load balancers that have changed; none while no worker is there: all are planned once one is. */
  plan(keys: Iterable<string>): readonly Plan[] {
    const worker = this.#worker;
    if (worker === undefined) return [];
    return [...keys].map((key) => this.#plan(worker, key));
  }

  /** Never throws; what could not be done is in the outcome and is tried again by itself. */
  async apply(plans: readonly Plan[]): Promise<Outcome | undefined> {
    const worker = this.#worker;
    this.#persistSoon();
    for (const { reload: cause } of plans) if (cause !== undefined) this.#arbiter.request(cause);
    if (worker === undefined) return undefined;
    const outcome = await applyPlans(worker, plans, (key) => this.#plan(worker, key));
    this.#account(worker, outcome);
    return outcome;
  }

  /** Whether the worker has this listener. */
  serves(listener: string): boolean {
    return this.#worker?.running.get(listener) !== undefined;
  }

  /** What the worker has acknowledged of a listener's members, by name. */
  members(listener: string): ReadonlyMap<string, RunningServer> {
    return this.#worker?.running.get(listener)?.servers ?? new Map();
  }

  /** Takes new settings; those that stand in the file come with a reload, if they differ. */
  configure(settings: HaproxySettings): void {
    this.#settings = settings;
    this.#arbiter.request('settings');
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    return this.#quarantine.problemsOf(loadBalancer);
  }

  status(): HaproxyStatus {
    const worker = this.#worker?.runtime.worker;
    return {
      version: worker?.version.text ?? '',
      workerPid: worker?.pid ?? 0,
      serving: worker !== undefined,
      reloadPending: [...this.#arbiter.pending],
      serversToDelete: this.#reaper?.waiting ?? 0,
      rejected: this.#quarantine.rejected,
      blocked: this.#quarantine.blocked.map(
        ({ address, port, reason }) => `${address} port ${port}: ${reason}`,
      ),
      fault: this.#fault || this.#limitProblem,
      persistFault: this.#persistFault,
      maxConnections: this.#maxConnections,
    };
  }

  /** Lets go of HAProxy, which serves on; what was not yet written to disk is written. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    this.#arbiter.close();
    this.#reaper?.close();
    if (this.#persistTimer !== undefined) {
      clearTimeout(this.#persistTimer);
      await this.#persist();
    }
    await this.#persisting;
    this.#worker?.runtime.close();
  }

  /** Ends HAProxy, too: for demonstrations and tests. Call close() first. */
  stopHaproxy(grace: number): Promise<void> {
    return stopHaproxy(this.#paths, grace);
  }

  readonly #context = (loadBalancers: ReadonlyMap<string, LoadBalancer>): RenderContext => {
    const settings = this.#settings;
    const limit = maxConnections(settings.maxConnections, fileLimit(), needsOf(loadBalancers.values()));
    this.#maxConnections = limit.value;
    this.#limitProblem = limit.problem ?? '';
    return renderContext(settings, this.#paths, limit.value, this.#aclIds.idOf);
  };

  #plan({ running, booted }: ServingWorker, key: string): Plan {
    const wanted = this.#options.wanted.get(key);
    if (wanted === undefined) this.#quarantine.forget(key);
    return planLoadBalancer(key, running, booted.get(key), wanted && this.#quarantine.effective(wanted));
  }

  #account(worker: ServingWorker, { acknowledged, refused, repaired, beyondRepair, lost }: Outcome): void {
    const { metrics, log } = this.#options;
    for (const { kind } of acknowledged) metrics.commandsAcknowledged(kind);
    for (const { command, reply, key } of refused) {
      metrics.commandRefused(command.kind);
      log.warn('HAProxy refused a command', { service: key, command: command.kind, reply });
    }
    for (const listener of repaired) {
      metrics.repaired('listener');
      log.info('Repaired a listener after a refused command', { listener });
    }
    for (const listener of beyondRepair)
      log.warn('Reloading: a listener cannot be repaired by commands', { listener });
    if (beyondRepair.length > 0 || lost?.retry === 'never') this.#arbiter.request('repair');
    if (lost?.retry === 'never') log.error('A command was not sent', { error: messageOf(lost) });
    if (worker === this.#worker) this.#reaper?.watch(acknowledged);
  }

  /** Gets a worker, however long it takes. One at a time; returns after the first attempt. */
  #obtain(): Promise<void> {
    if (this.#obtaining !== undefined || this.#closed) return this.#obtaining ?? Promise.resolve();
    const { log, metrics } = this.#options;
    const { haproxySupervisor } = this.#settings;
    const first = Promise.withResolvers<void>();
    const run = async (): Promise<void> => {
      for (let attempt = 0; !this.#closed; attempt++) {
        try {
          let worker = await this.#supervisor.adopt();
          if (worker === undefined && haproxySupervisor === 'agent') {
            worker = (await this.#wake(attempt)) ? undefined : await this.#supervisor.start();
            if (worker !== undefined) log.info('Started HAProxy', { worker: worker.runtime.worker.pid });
          } else if (worker === undefined) {
            await this.#persist();
          } else {
            log.info('Adopted the HAProxy that runs', {
              worker: worker.runtime.worker.pid,
              ours: worker.structure !== '',
            });
          }
          if (worker !== undefined) {
            if (this.#fault !== '') metrics.repaired('process');
            this.#take(worker);
            break;
          }
          this.#fault = 'HAProxy is not running';
        } catch (error) {
          if (this.#fault !== messageOf(error))
            log.error('HAProxy cannot be had', { error: messageOf(error) });
          this.#fault = messageOf(error);
        }
        first.resolve();
        await delay(Math.min(1_000, 50 * 2 ** attempt));
      }
      this.#obtaining = undefined;
      first.resolve();
    };
    this.#obtaining = run();
    return first.promise;
  }

  /**
   * A master that lives although its sockets are gone (someone removed them) makes new ones at a reload.
   * True where there is such a master: starting another HAProxy beside it would be wrong.
   */
  async #wake(attempt: number): Promise<boolean> {
    const pid = await masterPid(this.#paths);
    if (pid === undefined) return false;
    if (attempt % 4 === 3) {
      this.#options.log.warn('HAProxy lives but its sockets are gone: reloading it by signal', {
        master: pid,
      });
      process.kill(pid, 'SIGUSR2');
      this.#options.metrics.repaired('socket');
    }
    return true;
  }

  /** From now on this worker is the one that counts. */
  #take(worker: ServingWorker): void {
    const { wanted, log, replan } = this.#options;
    const { drainTimeout } = this.#settings;
    const old = this.#worker;
    this.#worker = worker;
    this.#bound = new Set(
      [...worker.booted.values()].flatMap(({ listeners }) => listeners.filter(isServed).flatMap(placesOf)),
    );
    this.#reaper?.close();
    this.#reaper = new Reaper(worker, {
      drainTimeout,
      onDeleted: (count) => log.debug('Deleted servers that were out of use', { count }),
      onError: (error) => log.debug('Stopped deleting servers', { error }),
    });
    this.#fault = '';
    old?.runtime.close();
    void worker.runtime.closed.then((error) => {
      if (worker !== this.#worker || this.#closed) return;
      log.warn('Lost the connection to HAProxy', { error: messageOf(error) });
      this.#worker = undefined;
      this.#fault = 'The connection to HAProxy is lost';
      void this.#obtain();
    });
    if (worker.structure === '') this.#arbiter.request('adopted');
    const behind = [...wanted.values()].filter(
      (each) => worker.booted.get(each.key) !== this.#quarantine.effective(each),
    );
    const gone = [...worker.booted.keys()].filter((key) => !wanted.has(key));
    replan([...behind.map(({ key }) => key), ...gone]);
    // An adopted worker may differ from the file it booted from in every load balancer.
    if (old === undefined) replan(wanted.keys());
  }

  /** True where it is done or not needed; false asks to try again later. */
  async #reload(causes: ReadonlySet<ReloadCause>): Promise<boolean> {
    const worker = this.#worker;
    if (worker === undefined) return true;
    const { wanted, metrics, log } = this.#options;
    const count = (result: 'done' | 'failed'): void => {
      for (const cause of causes) metrics.reloaded(cause, result);
    };
    try {
      const candidate = await this.#maker.prepare(wanted, worker.booted);
      await this.#persisting;
      await this.#file.write(candidate.chunks);
      const isForced = causes.has('repair') || causes.has('socket-lost') || causes.has('adopted');
      if (candidate.structure === worker.structure && !isForced) return true;
      const from = await logSize(this.#paths.log);
      const began = performance.now();
      const result = await this.#askForReload();
      if (!result.ok) {
        const said = result.log || (await logSince(this.#paths.log, from));
        log.error('HAProxy refused to reload, the old worker serves on', { log: said.slice(-2_000) });
        const any = this.#supervisor.rejectNamed(said, candidate, worker.booted);
        await this.#file.restoreLastGood();
        count('failed');
        this.#fault = any ? '' : 'HAProxy refused the last reload; see the log';
        return false;
      }
      const next = await this.#handover(candidate, worker.runtime.worker.pid);
      this.#take(next);
      await this.#file.keepAsLastGood().catch((error) => this.#notPersisted(error));
      log.info('Reloaded HAProxy', {
        causes: [...causes],
        worker: next.runtime.worker.pid,
        ms: Math.round(performance.now() - began),
      });
      count('done');
      return true;
    } catch (error) {
      log.error('Cannot reload HAProxy', { causes: [...causes], error: messageOf(error) });
      if (error instanceof HeadgateError && error.code === 'FILE_WRITE') this.#notPersisted(error);
      else this.#fault = messageOf(error);
      count('failed');
      return this.#closed;
    }
  }

  async #askForReload(): Promise<ReloadOutcome> {
    const { masterSocket } = this.#paths;
    if (existsSync(masterSocket)) return reload(masterSocket);
    const pid = await masterPid(this.#paths);
    if (pid === undefined)
      throw new HeadgateError('HAPROXY_RELOAD', 'HAProxy has neither a master socket nor a pid file');
    return signalReload(pid, masterSocket);
  }

  /** A reload counts only once a new worker is seen to serve the new file. */
  async #handover(candidate: Parameters<Supervisor['find']>[0], oldPid: number): Promise<ServingWorker> {
    const until = performance.now() + HANDOVER_TIMEOUT;
    while (performance.now() < until) {
      const next = await this.#supervisor.find(candidate);
      if (next !== undefined && next.runtime.worker.pid !== oldPid) return next;
      next?.runtime.close();
      await delay(10);
    }
    throw new HeadgateError(
      'HAPROXY_RELOAD',
      'HAProxy says it has reloaded, but no worker serves the new file',
    );
  }

  async #pressure(): Promise<number> {
    const { maxOldWorkers, oldWorkerMemory } = this.#settings;
    try {
      const { oldWorkers } = await showProc(this.#paths.masterSocket);
      const memory = (await Promise.all(oldWorkers.map(({ pid }) => residentMemory(pid)))).reduce(
        (a, b) => a + b,
        0,
      );
      return (
        Math.max(0, oldWorkers.length - maxOldWorkers + 1) +
        Math.floor(memory / (oldWorkerMemory * 1024 * 1024))
      );
    } catch {
      return 0;
    }
  }

  /** Once a second: is the worker alive, is it still the one that takes connections, are its files as we left them. */
  async #beat(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined || this.#closed) return;
    this.#beats++;
    try {
      const { stopping } = parseInfo(await worker.runtime.ask('show info'));
      if (stopping && worker === this.#worker && !this.#arbiter.isReloading) {
        this.#options.log.warn('HAProxy was reloaded by someone else');
        this.#options.metrics.repaired('worker');
        this.#worker = undefined;
        worker.runtime.close();
        void this.#obtain();
        return;
      }
      await this.#lookAfterFiles();
      if (this.#beats % PROBE_EVERY === 0) await this.#probeBlocked();
      if (this.#beats % TRIM_EVERY === 0) await trimLog(this.#paths.log, LOG_SIZE);
      if (performance.now() - this.#lastAudit >= this.#settings.auditInterval) await this.#audit(worker);
    } catch (error) {
      // A lost connection says so itself.
      this.#options.log.debug('Looked after HAProxy in vain', { error: messageOf(error) });
    }
  }

  async #lookAfterFiles(): Promise<void> {
    if (this.#arbiter.isReloading) return;
    const { log, metrics } = this.#options;
    if (!(await this.#file.isUntouched()) && !this.#arbiter.isReloading) {
      log.warn('haproxy.cfg was changed by someone else: writing it again', { path: this.#paths.config });
      metrics.repaired('file');
      await this.#persist();
    }
    if (!existsSync(this.#paths.masterSocket) && this.#settings.haproxySupervisor === 'agent') {
      log.warn("HAProxy's master socket is gone: reloading by signal to bring it back");
      metrics.repaired('socket');
      this.#arbiter.request('socket-lost');
    }
  }

  async #probeBlocked(): Promise<void> {
    const wanted = new Set<string>();
    for (const { listeners } of this.#options.wanted.values()) {
      for (const place of listeners.filter(isServed).flatMap(placesOf)) wanted.add(place);
    }
    for (const { address, port } of this.#quarantine.blocked) {
      const ignoreAccess = this.#settings.haproxySupervisor === 'external';
      const isWanted = wanted.has(`${address} ${port}`);
      if (isWanted && (await probeBind(address, port, ignoreAccess)) !== undefined) continue;
      this.#quarantine.unblock(address, port);
      if (isWanted) this.#arbiter.request('unblocked');
    }
  }

  async #audit(worker: ServingWorker): Promise<void> {
    this.#lastAudit = performance.now();
    const { drifted, next } = await audit(worker, this.#auditFrom);
    this.#auditFrom = next;
    if (drifted.length === 0 || worker !== this.#worker) return;
    for (const listener of drifted) {
      this.#options.log.warn('HAProxy runs something else than it was told: repairing', { listener });
      this.#options.metrics.repaired('audit');
    }
    this.#options.replan(drifted.map(keyOfListener));
  }

  #persistSoon(): void {
    if (this.#persistTimer !== undefined || this.#closed) return;
    this.#persistTimer = setTimeout(() => void this.#persist(), PERSIST_AFTER);
  }

  /** Brings the file to desired, unless something in it is still unchecked: then the reload that is due writes it. */
  #persist(): Promise<void> {
    clearTimeout(this.#persistTimer);
    this.#persistTimer = undefined;
    const write = async (): Promise<void> => {
      const effective = this.#maker.effective(this.#options.wanted);
      if (this.#arbiter.isReloading || (this.#worker !== undefined && !this.#maker.isChecked(effective)))
        return;
      try {
        const { chunks } = await configText(inFileOrder(effective), this.#context(effective));
        await this.#file.write(chunks);
        this.#options.metrics.persisted('done');
        this.#persistFault = '';
      } catch (error) {
        this.#notPersisted(error);
      }
    };
    this.#persisting = this.#persisting.then(write);
    return this.#persisting;
  }

  #notPersisted(error: unknown): void {
    const { metrics, log } = this.#options;
    metrics.persisted('failed');
    if (this.#persistFault === '')
      log.error('Cannot keep the state on disk; traffic goes on', { error: messageOf(error) });
    this.#persistFault = messageOf(error);
    if (!this.#closed) this.#persistTimer ??= setTimeout(() => void this.#persist(), 1_000);
  }
}

function placesOf({ addresses, port }: Listener): readonly string[] {
  return addresses.map((address) => `${address} ${port}`);
}
