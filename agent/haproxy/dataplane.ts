// The HAProxy dataplane, as the loop sees it: plan what changed, apply it to the worker that serves now.
// Behind that it puts the parts together: the supervisor gets a worker, the reloader replaces it where commands are
// not enough, the persister keeps the file, the caretaker notices what others do to HAProxy, the reaper cleans up.

import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError, messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { MetricFamily } from '../metric-family.ts';
import type { LoadBalancer, Problem } from '../model.ts';
import { applyPlans, type Outcome } from './apply.ts';
import { AclIds } from './config/acl-ids.ts';
import { probeBind } from './config/bind-probe.ts';
import { CandidateMaker } from './config/candidate.ts';
import { ConfigFile } from './config/config-file.ts';
import { fileLimit, maxConnections, needsOf } from './config/limits.ts';
import { listenerOfBackend } from './config/listener-config.ts';
import { Persister } from './config/persister.ts';
import { Quarantine } from './config/quarantine.ts';
import { RejectionFile } from './config/rejection-file.ts';
import { type RenderContext, type RenderSettings, renderContext } from './config/render-context.ts';
import {
  isShared,
  type SharedTables,
  sharedTables,
  type TablesCredentials,
  type TablesSettings,
  writeTablesCredentials,
} from './config/shared-tables.ts';
import { writeStartScript } from './config/start-script.ts';
import { OldWorkers } from './old-workers.ts';
import { type Plan, planLoadBalancer } from './plan.ts';
import { Caretaker, type Repair } from './process/caretaker.ts';
import { CheckWatch } from './process/check-watch.ts';
import { type HaproxyAccess, type HaproxyPaths, haproxyPaths, stopHaproxy } from './process/process.ts';
import { haproxyVersion } from './process/program.ts';
import { ReloadArbiter, type ReloadCause } from './process/reload-arbiter.ts';
import { Reloader } from './process/reloader.ts';
import { forgetServerStates } from './process/server-states.ts';
import { Supervisor } from './process/supervisor.ts';
import { readRunning } from './readback.ts';
import { Reaper } from './reaper.ts';
import type { RunningServer } from './running.ts';
import { askOnce } from './socket/ask-once.ts';
import type { CheckResult } from './socket/check-results.ts';
import { type ListenerStats, parseListenerStats } from './socket/listener-stats.ts';
import type { Load } from './socket/readings.ts';
import { haproxyFamilies } from './stats/families.ts';
import { type MetricsDetail, Statistics } from './stats/statistics.ts';
import type { ServingWorker } from './worker.ts';

export interface HaproxySettings extends RenderSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly haproxy: string;
  readonly haproxySupervisor: 'agent' | 'external';
  readonly haproxyAccess: HaproxyAccess;
  /** The network namespace that it runs in, a name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly maxConnections: number;
  readonly drainTimeout: number;
  readonly reloadInterval: number;
  /** Megabytes. */
  readonly oldWorkerMemory: number;
  readonly auditInterval: number;
  readonly metricsDetail: MetricsDetail;
  readonly healthReadInterval: number;
}

/** What the dataplane tells about itself; counters only go up. */
export interface HaproxyMetrics {
  commandsAcknowledged(kind: string): void;
  commandRefused(kind: string): void;
  repaired(what: Repair): void;
  reloaded(cause: ReloadCause, result: 'done' | 'failed'): void;
  persisted(result: 'done' | 'failed'): void;
}

export interface HaproxyStatus {
  readonly version: string;
  readonly workerPid: number;
  readonly serving: boolean;
  readonly reloadPending: readonly string[];
  readonly serversToDelete: number;
  /** How many load balancers HAProxy rejects. */
  readonly rejected: number;
  readonly blocked: readonly string[];
  /** What is wrong now, '' where nothing is. */
  readonly fault: string;
  /** Why the state on disk is not the desired one, '' where it is. */
  readonly persistFault: string;
  readonly maxConnections: number;
}

export interface HaproxyOptions {
  readonly settings: HaproxySettings;
  /** The desired state; read here, written by the loop. */
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** Asks the loop to plan these again. */
  readonly replan: (keys: Iterable<string>) => void;
  /** It is known by now what is served and what is not, of everything. */
  readonly onKnown?: () => void;
  /** Checks have found something else of members of these load balancers. */
  readonly onChecked?: (keys: readonly string[]) => void;
  /** HAProxy boots: until it is there nobody waits for the agent. */
  readonly onBoot?: () => void;
  readonly metrics: HaproxyMetrics;
  readonly log: Log;
}

/** Milliseconds in which a worker that ends during a reload is expected to be followed by another. */
const SUCCESSION = 500;
/** Seconds of which it is remembered what HAProxy had to do. */
const LOADS = 120;

export class HaproxyDataplane {
  readonly #options: HaproxyOptions;
  #settings: HaproxySettings;
  readonly #paths: HaproxyPaths;
  readonly #aclIds = new AclIds();
  readonly #quarantine = new Quarantine();
  readonly #rejectionFile: RejectionFile;
  readonly #maker: CandidateMaker;
  readonly #persister: Persister;
  readonly #supervisor: Supervisor;
  readonly #reloader: Reloader;
  readonly #arbiter: ReloadArbiter;
  readonly #caretaker: Caretaker;
  /** Keys of what a worker that is being replaced has refused: planned again by whoever serves after the reload. */
  readonly #afterReload = new Set<string>();
  readonly #statistics: Statistics;
  readonly #checkWatch: CheckWatch;
  #worker: ServingWorker | undefined;
  readonly #oldWorkers: OldWorkers;
  #reaper: Reaper | undefined;
  #isObtaining = false;
  #isStarted = false;
  /** The global part has changed while a worker that had booted, or was booting, was not yet taken. */
  #isGlobalLate = false;
  #tables: SharedTables | undefined;
  #limit: { readonly value: number; readonly problem: string | undefined } = { value: 0, problem: undefined };
  #loads: readonly Load[] = [];
  #closed = false;

  constructor(options: HaproxyOptions) {
    const { settings, wanted, replan, metrics, log } = options;
    this.#options = options;
    this.#settings = settings;
    this.#paths = haproxyPaths(settings.stateDir, settings.runtimeDir, settings.haproxyAccess);
    const paths = this.#paths;
    this.#rejectionFile = new RejectionFile(`${paths.config}.rejected.json`);
    const file = new ConfigFile(paths.config, paths.fileMode, () => {
      log.warn('haproxy.cfg was changed by someone else: written again', { path: paths.config });
      metrics.repaired('file');
    });
    const quarantine = this.#quarantine;
    const executable = settings.haproxy;
    const isExternal = settings.haproxySupervisor === 'external';
    const worker = (): ServingWorker | undefined => this.#worker;
    const isReloading = (): boolean => this.#arbiter.isReloading;
    const onRepair = (what: Repair): void => metrics.repaired(what);
    const context = this.#context;
    const onRefused = (key: string): void => {
      this.#persister.soon();
      replan([key]);
    };

    const maker = new CandidateMaker({
      executable,
      scratchFile: `${paths.config}.candidate`,
      quarantine,
      context,
      bound: () => (this.#worker === undefined ? new Set() : this.#worker.bound),
      ignoreAccess: isExternal,
      canProbe: settings.netns === '',
      onRefused,
    });
    const persister = new Persister({
      file,
      loadBalancers: () => this.#fileable(),
      context,
      keepRejections: () => this.#rejectionFile.save(quarantine.rejections),
      onPersisted: (result) => metrics.persisted(result),
      log,
    });
    const startsHaproxy = !isExternal;
    const supervisor = new Supervisor({
      executable,
      netns: settings.netns,
      paths,
      maker,
      quarantine,
      file,
      context,
      wanted,
      startsHaproxy,
      isReloading,
      onRepair,
      onUnwritten: (error) => persister.failed(error),
      onRefused,
      onBoot: () => options.onBoot?.(),
      log,
    });
    this.#reloader = new Reloader({
      paths,
      maker,
      supervisor,
      file,
      persister,
      wanted,
      worker,
      take: (next) => this.#take(next),
      onReload: (causes, result) => {
        for (const cause of causes) metrics.reloaded(cause, result);
      },
      log,
    });
    this.#arbiter = new ReloadArbiter({
      interval: () => this.#settings.reloadInterval,
      reload: async (causes) => {
        const result = await this.#reloader.reload(causes);
        replan([...this.#afterReload]);
        this.#afterReload.clear();
        if (this.#worker === undefined) void this.#obtain();
        return result;
      },
      pressure: () => {
        const { maxOldWorkers, oldWorkerMemory } = this.#settings;
        return this.#reloader.pressure({ most: maxOldWorkers, memory: oldWorkerMemory * 1024 * 1024 });
      },
    });
    this.#caretaker = new Caretaker({
      paths,
      file,
      persister,
      quarantine,
      wanted,
      worker,
      isReloading,
      onReplaced: (old) => this.#lose(old, 'HAProxy was reloaded by someone else'),
      requestReload: (cause) => this.#arbiter.request(cause),
      replan,
      onRepair,
      onLoad: (load) => {
        this.#loads = [...this.#loads.slice(1 - LOADS), load];
      },
      settings: () => this.#settings,
      log,
    });
    this.#oldWorkers = new OldWorkers({
      masterSocket: paths.masterSocket,
      drainTimeout: () => this.#settings.drainTimeout,
      hardStopAfter: () => this.#settings.hardStopAfter,
      onEnded: (sessions) => log.info('Ended connections of old workers to removed members', { sessions }),
      onError: (error) => log.debug('Cannot look after old workers now', { error }),
    });
    this.#statistics = new Statistics({
      adminSocket: paths.adminSocket,
      file: paths.counters,
      wanted,
      workerPid: () => this.#worker?.runtime.worker.pid,
      detail: () => this.#settings.metricsDetail,
      log,
    });
    this.#checkWatch = new CheckWatch({
      worker,
      wanted,
      interval: () => this.#settings.healthReadInterval,
      onChanged: (keys) => options.onChecked?.(keys),
      log,
    });
    this.#maker = maker;
    this.#persister = persister;
    this.#supervisor = supervisor;
  }

  /**
   * Makes the folders, checks the version, and gets hold of a worker. Where none can be had at once it goes on trying
   * in the background. Errors: HAPROXY_MISSING, HAPROXY_VERSION; those of the file system.
   */
  async start(): Promise<void> {
    await mkdir(dirname(this.#paths.config), { recursive: true, mode: 0o700 });
    await mkdir(dirname(this.#paths.adminSocket), { recursive: true, mode: 0o711 });
    await forgetServerStates(this.#paths).catch(() => undefined);
    await writeStartScript(this.#paths).catch((error: unknown) => this.#persister.failed(error));
    const { text: version } = await haproxyVersion(this.#settings.haproxy);
    this.#quarantine.restore(await this.#rejectionFile.load(version));
    this.#caretaker.start();
    await this.#statistics.start();
    this.#checkWatch.start();
    this.#isStarted = true;
    await this.#obtain();
  }

  /** One worker is being replaced by another, on our order. */
  get isReloading(): boolean {
    return this.#arbiter.isReloading;
  }

  /** Whether a HAProxy answers at our sockets, started by whomever. Reads only. */
  async isRunning(): Promise<boolean> {
    const runtime = await this.#supervisor.connect().catch(() => undefined);
    runtime?.close();
    return runtime !== undefined;
  }

  /** Listeners with members of the HAProxy that answers at our sockets, started by whomever: none without one. Reads only. */
  async runningListeners(): Promise<readonly string[]> {
    const runtime = await this.#supervisor.connect().catch(() => undefined);
    if (runtime === undefined) return [];
    try {
      const names = (await readRunning(runtime, [], false, this.#aclIds.idOf)).names();
      return [...new Set([...names].map(listenerOfBackend))];
    } finally {
      runtime.close();
    }
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
    if (worker === undefined) return undefined;
    if (plans.some(({ reload, commands }) => reload !== undefined || commands.length > 0))
      this.#persister.soon();
    for (const { reload } of plans) if (reload !== undefined) this.#arbiter.request(reload);
    const outcome = await applyPlans(worker, plans, (key) => this.#plan(worker, key));
    this.#account(worker, outcome);
    return outcome;
  }

  /** Takes new settings; those that stand in the file come with a reload, if they differ. */
  configure(settings: HaproxySettings): void {
    this.#settings = settings;
    this.#globalChanged();
  }

  /**
   * Shares the stick-tables with the HAProxy of another host from now on: before the start without a reload, later
   * with one. Errors: FILE_WRITE, and HAPROXY_REJECTED where the address and port cannot be listened on.
   */
  async shareTables(settings: TablesSettings, credentials: TablesCredentials): Promise<void> {
    const tables = sharedTables(settings, credentials.fingerprint, this.#paths.config);
    const { address, port } = settings;
    // In another network namespace only HAProxy itself can tell.
    const canProbe = this.#settings.netns === '';
    const why = canProbe ? await probeBind(address, port, false) : undefined;
    const isOurs = why !== undefined && (await isShared(this.#paths.config, tables));
    if (why !== undefined && !(isOurs && (await this.isRunning())))
      throw new HeadgateError('HAPROXY_REJECTED', `The stick-tables cannot be shared: ${why}`);
    await writeTablesCredentials(tables, credentials, this.#paths.fileMode);
    this.#tables = tables;
    if (this.#isStarted) this.#globalChanged();
  }

  /** Errors: RUNTIME_TIMEOUT and others, where HAProxy does not answer on a new connection in time (milliseconds). */
  async ask(timeoutMs: number): Promise<void> {
    await askOnce(this.#paths.adminSocket, 'show info', { timeoutMs });
  }

  /** What the worker is proved to serve of a load balancer; `pending` where something is still to be done. */
  served(key: string): LoadBalancer | 'pending' | undefined {
    const worker = this.#worker;
    if (worker === undefined) return 'pending';
    const { reload, commands } = this.#plan(worker, key);
    if (reload !== undefined || commands.length > 0) return 'pending';
    const wanted = this.#options.wanted.get(key);
    return wanted && this.#quarantine.effective(wanted);
  }

  /** Whether the worker has this listener. */
  serves(listener: string): boolean {
    return this.#worker?.running.get(listener) !== undefined;
  }

  /** Whether the worker may still serve anything of this load balancer; true while that cannot be known. */
  servesAny(key: string): boolean {
    return this.#worker === undefined || this.#worker.structure === '' || this.#worker.booted.has(key);
  }

  /** What the worker has acknowledged of a listener's members, by name. */
  members(listener: string): ReadonlyMap<string, RunningServer> {
    return this.#worker?.running.get(listener)?.servers ?? new Map();
  }

  /** Read anew from HAProxy, as far as it answers. */
  async families(): Promise<readonly MetricFamily[]> {
    return haproxyFamilies(await this.#statistics.sample());
  }

  /** What checks have found of a listener's members, by name; empty without a monitor. */
  checks(listener: string): ReadonlyMap<string, CheckResult> {
    return this.#checkWatch.results(listener);
  }

  /** What HAProxy had to do in the last two minutes, a value a second, the newest last; fewer while none was there. */
  loads(): readonly Load[] {
    return this.#loads;
  }

  /** What a listener and its members do now; undefined where HAProxy does not have it, or does not answer. */
  async stats(listener: string): Promise<ListenerStats | undefined> {
    if (!this.serves(listener)) return undefined;
    const answer = this.#worker?.runtime.ask(`show stat ${listener} 7 -1`, { lane: 'bulk' });
    return answer?.then(parseListenerStats).catch(() => undefined);
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
      fault:
        (worker === undefined ? this.#supervisor.fault : '') ||
        this.#reloader.fault ||
        (this.#limit.problem ?? ''),
      persistFault: this.#persister.fault,
      maxConnections: this.#limit.value,
    };
  }

  /** Lets go of HAProxy, which serves on; what was not yet written to disk is written. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#supervisor.close();
    this.#caretaker.close();
    this.#checkWatch.close();
    this.#arbiter.close();
    this.#reaper?.close();
    this.#oldWorkers.close();
    await this.#statistics.close();
    await this.#persister.close();
    this.#worker?.runtime.close();
  }

  /** Ends the HAProxy that was started here: for demonstrations and tests. Call close() first. Milliseconds. */
  async stopHaproxy(grace: number): Promise<void> {
    if (this.#supervisor.hasStarted) await stopHaproxy(this.#paths, grace);
  }

  readonly #context = (loadBalancers: ReadonlyMap<string, LoadBalancer>): RenderContext => {
    const settings = this.#settings;
    const before = this.#limit.problem;
    this.#limit = maxConnections(settings.maxConnections, fileLimit(), needsOf(loadBalancers.values()));
    const { problem } = this.#limit;
    if (problem !== undefined && problem !== before) this.#options.log.error(problem);
    return renderContext(settings, this.#paths, this.#limit.value, this.#aclIds.idOf, this.#tables);
  };

  /** Something stands in the global part that the worker may not have. */
  #globalChanged(): void {
    if (this.#worker === undefined) this.#isGlobalLate = true;
    else this.#arbiter.request('settings');
  }

  #plan({ running, booted }: ServingWorker, key: string): Plan {
    const wanted = this.#options.wanted.get(key);
    if (wanted === undefined) this.#quarantine.forget(key);
    return planLoadBalancer(key, running, booted.get(key), wanted && this.#quarantine.effective(wanted));
  }

  /** What the file may hold now: undefined while a reload is at it, or has to check something in it first. */
  #fileable(): ReadonlyMap<string, LoadBalancer> | undefined {
    const effective = this.#maker.effective(this.#options.wanted);
    if (this.#arbiter.isReloading || (this.#worker !== undefined && !this.#maker.isChecked(effective)))
      return undefined;
    return effective;
  }

  #account(worker: ServingWorker, { acknowledged, refused, repaired, beyondRepair, lost }: Outcome): void {
    const { metrics, log } = this.#options;
    for (const { kind } of acknowledged) metrics.commandsAcknowledged(kind);
    // A worker whose successor listens already refuses everything: no fault, and no reason for another reload.
    const isHandover = this.#arbiter.isReloading;
    for (const { command, reply, key } of refused) {
      metrics.commandRefused(command.kind);
      const facts = { service: key, command: command.kind, reply };
      if (isHandover) log.debug('HAProxy refused a command during a reload', facts);
      else log.warn('HAProxy refused a command', facts);
    }
    for (const listener of repaired) {
      metrics.repaired('listener');
      log.info('Repaired a listener after a refused command', { listener });
    }
    if (isHandover) for (const { key } of refused) this.#afterReload.add(key);
    else
      for (const listener of beyondRepair)
        log.warn('Reloading: commands do not bring a listener to desired', { listener });
    const isOurFault = lost?.retry === 'never';
    if (isOurFault) log.error('A command was not sent', { error: messageOf(lost) });
    if ((beyondRepair.length > 0 && !isHandover) || isOurFault) this.#arbiter.request('repair');
    if (worker === this.#worker) this.#reaper?.watch(acknowledged);
    this.#oldWorkers.watch(acknowledged);
  }

  /** Returns once there is a worker, or the first attempt to get one has failed. One at a time. */
  #obtain(): Promise<void> {
    if (this.#isObtaining) return Promise.resolve();
    this.#isObtaining = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onAttempt = async (): Promise<void> => {
      // Someone else starts HAProxy: it shall find a file to start from.
      if (this.#settings.haproxySupervisor === 'external') await this.#persister.now();
      resolve();
    };
    const run = async (): Promise<void> => {
      const worker = await this.#supervisor.obtain(onAttempt);
      this.#isObtaining = false;
      if (worker !== undefined) this.#take(worker);
      resolve();
    };
    void run();
    return promise;
  }

  /** From now on this worker is the one that counts. */
  #take(next: ServingWorker): void {
    const { wanted, log, replan } = this.#options;
    const old = this.#worker;
    if (this.#closed || old?.runtime.worker.pid === next.runtime.worker.pid) {
      next.runtime.close();
      return;
    }
    this.#worker = next;
    this.#reaper?.close();
    this.#reaper = new Reaper(next, {
      drainTimeout: () => this.#settings.drainTimeout,
      onDeleted: (count) => log.debug('Deleted servers that were out of use', { count }),
      onError: (error) => log.debug('Stopped deleting servers', { error }),
    });
    this.#oldWorkers.succeed(next, old);
    if (old !== undefined) this.#statistics.retire(old.runtime);
    void next.runtime.closed.then((error) => this.#lose(next, messageOf(error)));
    if (next.structure === '') this.#arbiter.request('adopted');
    if (this.#isGlobalLate) this.#arbiter.request('settings');
    this.#isGlobalLate = false;
    // What an adopted worker runs may differ everywhere from the file it booted from; one that we booted differs only
    // in what has changed since.
    const isBehind = (each: LoadBalancer): boolean =>
      next.booted.get(each.key) !== this.#quarantine.effective(each);
    // Nothing is left to do for these, but perhaps to be told: what was out of service is served now.
    const isNew = ({ key }: LoadBalancer): boolean => next.booted.get(key) !== old?.booted.get(key);
    this.#persister.catchUp();
    if (old === undefined) replan(wanted.keys());
    else replan([...wanted.values()].filter((each) => isBehind(each) || isNew(each)).map(({ key }) => key));
    for (const [key, before] of old?.booted ?? []) {
      const after = next.booted.get(key);
      if (after === before) continue;
      const still = new Set(
        [after, wanted.get(key)].flatMap((each) => each?.listeners ?? []).map(({ name }) => name),
      );
      for (const { name } of before.listeners) if (!still.has(name)) this.#aclIds.release(name);
    }
    // Gone from the worker, or still to go from it.
    const others = new Set([...next.booted.keys(), ...(old?.booted.keys() ?? [])]);
    replan([...others].filter((key) => !wanted.has(key)));
    if (next.structure !== '' && (old?.structure ?? '') === '') this.#options.onKnown?.();
  }

  #lose(worker: ServingWorker, why: string): void {
    if (worker !== this.#worker || this.#closed) return;
    this.#worker = undefined;
    this.#statistics.retire(worker.runtime);
    const obtain = (): void => {
      if (this.#worker !== undefined || this.#closed) return;
      this.#options.log.warn('Lost the HAProxy worker', { why });
      this.#supervisor.lose(why);
      void this.#obtain();
    };
    // A worker without connections ends as soon as its successor is there: the reload is about to bring that one.
    if (this.#arbiter.isReloading) setTimeout(obtain, SUCCESSION);
    else obtain();
  }
}
