// The HAProxy dataplane, as the loop sees it: plan what changed, apply it to the worker that serves now.
// Behind that (parts.ts) the supervisor gets a worker, the reloader replaces it where commands are not enough, the
// persister keeps the file, the caretaker notices what others do to HAProxy, the reaper cleans up.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { HeadgateError } from '../base/errors.ts';
import type { MetricFamily } from '../base/metric-family.ts';
import { makeFolder } from '../host/make-directory.ts';
import { isShortage } from '../host/shortage.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import { applyPlans, type Outcome } from './apply.ts';
import { isServed, listenerOfBackend } from './config/listener-config.ts';
import type { TablesCredentials, TablesSettings } from './config/shared-tables.ts';
import type { HaproxyOptions, HaproxySettings, HaproxyStatus } from './options.ts';
import { reportOutcome } from './outcome-report.ts';
import { type HaproxyParts, haproxyParts } from './parts.ts';
import { type Plan, planLoadBalancer } from './plan.ts';
import { stopHaproxy } from './process/process.ts';
import { haproxyVersion } from './process/program.ts';
import { readRunning } from './readback.ts';
import type { RunningServer } from './running.ts';
import { askOnce } from './socket/ask-once.ts';
import type { CheckResult } from './socket/check-results.ts';
import { type ListenerStats, readListenerStats } from './socket/listener-stats.ts';
import { askWorker } from './socket/master.ts';
import type { Load } from './socket/readings.ts';
import type { Runtime } from './socket/runtime.ts';
import { haproxyFamilies } from './stats/families.ts';
import { forgetServerStates } from './worker/server-states.ts';
import type { ServingWorker } from './worker.ts';

/** Nothing is known of what was told to a worker whose answer nobody waits for. */
const SUCCEEDED: Outcome = {
  acknowledged: [],
  refused: [],
  repaired: [],
  beyondRepair: [],
  lost: new HeadgateError('RUNTIME_CLOSED', 'Another worker serves', { retry: 'now' }),
};

export class HaproxyDataplane {
  readonly #options: HaproxyOptions;
  #settings: HaproxySettings;
  readonly #parts: HaproxyParts;
  #preparation: Promise<void> | undefined;
  #isStarted = false;

  constructor(options: HaproxyOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#parts = haproxyParts(options, () => this.#settings);
  }

  /** Does of start() what needs no load balancers, while those are still being read. What fails fails in start(). */
  prepare(): void {
    this.#prepare().catch(() => undefined);
  }

  /**
   * Makes the folders, checks the version, and gets hold of a worker. Where none can be had at once it goes on trying
   * in the background. Errors: HAPROXY_MISSING, HAPROXY_VERSION; those of the file system.
   */
  async start(): Promise<void> {
    const { hostPart, persister, caretaker, statistics, checkWatch, serving } = this.#parts;
    await this.#prepare();
    await hostPart.writeStartScript().catch((error: unknown) => persister.failed(error));
    caretaker.start();
    await statistics.start();
    checkWatch.start();
    this.#isStarted = true;
    await serving.obtain();
  }

  /** Plans for load balancers that have changed; none while no worker is there: all are planned once one is. */
  plan(keys: Iterable<string>): readonly Plan[] {
    const { worker } = this.#parts.serving;
    if (worker === undefined) return [];
    const planned = [...keys];
    if (this.isReloading) this.#parts.serving.changedMeanwhile(planned);
    return planned.map((key) => this.#plan(worker, key));
  }

  /** Never throws; what could not be done is in the outcome and is tried again by itself. */
  async apply(plans: readonly Plan[]): Promise<Outcome | undefined> {
    const { serving, persister, arbiter, checkWatch } = this.#parts;
    const { worker } = serving;
    if (worker === undefined) return undefined;
    checkWatch.changed(plans.map(({ key }) => key));
    if (plans.some(({ reload, commands }) => reload !== undefined || commands.length > 0)) persister.soon();
    for (const { reload } of plans) if (reload !== undefined) arbiter.request(reload);
    this.#tellLeaving(plans);
    const applying = applyPlans(worker, plans, (key) => this.#plan(worker, key));
    const outcome = await serving.orSucceeded(applying);
    if (outcome === undefined) {
      // Its successor is told what is wanted by then; what the old one has done is still to be ended there.
      void applying.then((done) => serving.acknowledged(worker, done.acknowledged));
      return SUCCEEDED;
    }
    const { acknowledged, refused, beyondRepair, lost } = outcome;
    // A worker whose successor listens already refuses everything: no fault, and no reason for another reload.
    const isHandover = arbiter.isReloading;
    reportOutcome(outcome, isHandover, this.#options);
    if (isHandover) serving.planAfterReload(refused.map(({ key }) => key));
    if ((beyondRepair.length > 0 && !isHandover) || lost?.retry === 'never') arbiter.request('repair');
    serving.acknowledged(worker, acknowledged);
    return outcome;
  }

  /** Takes new settings; those that stand in the file come with a reload, if they differ. */
  configure(settings: HaproxySettings): void {
    const { arbiter, checkWatch, serving } = this.#parts;
    this.#settings = settings;
    arbiter.retime();
    checkWatch.retime();
    serving.globalChanged();
  }

  /**
   * Shares the stick-tables with the HAProxy of another host from now on: before the start without a reload, later
   * with one. Errors: FILE_WRITE, and HAPROXY_REJECTED where the address and port cannot be listened on.
   */
  async shareTables(settings: TablesSettings, credentials: TablesCredentials): Promise<void> {
    const { hostPart, serving } = this.#parts;
    await hostPart.shareTables(settings, credentials);
    if (this.#isStarted) serving.globalChanged();
  }

  /** One worker is being replaced by another, on our order. */
  get isReloading(): boolean {
    return this.#parts.arbiter.isReloading;
  }

  /**
   * Listeners with members of the HAProxy that answers at our sockets, started by whomever: none without one, undefined
   * where one is there that does not say. Reads only.
   */
  async runningListeners(): Promise<readonly string[] | undefined> {
    const { supervisor, hostPart } = this.#parts;
    let runtime: Runtime | undefined;
    try {
      runtime = await supervisor.connect();
      if (runtime === undefined) return [];
      const names = (await readRunning(runtime, [], false, hostPart.aclIds.idOf)).names();
      return [...new Set([...names].map(listenerOfBackend))];
    } catch {
      return undefined;
    } finally {
      runtime?.close();
    }
  }

  /**
   * Errors: RUNTIME_TIMEOUT and others, where HAProxy does not answer on a new connection in time (milliseconds). An
   * agent that lacks descriptors for one asks on the connection that it has: HAProxy may well be there.
   */
  async ask(timeoutMs: number): Promise<void> {
    const { paths, serving } = this.#parts;
    const runtime = serving.worker?.runtime;
    try {
      if (runtime === undefined || existsSync(paths.adminSocket))
        await askOnce(paths.adminSocket, 'show info', { timeoutMs });
      else await askWorker(paths.masterSocket, runtime.worker.pid, { timeoutMs });
    } catch (error) {
      if (runtime === undefined || !isShortage(error)) throw error;
      await runtime.ask('show info');
    }
  }

  /** What the worker is proved to serve of a load balancer; `pending` where something is still to be done. */
  served(key: string): LoadBalancer | 'pending' | undefined {
    const { serving, quarantine } = this.#parts;
    if (serving.worker === undefined) return 'pending';
    const { reload, commands } = this.#plan(serving.worker, key);
    if (reload !== undefined || commands.length > 0) return 'pending';
    const wanted = this.#options.wanted.get(key);
    return wanted && quarantine.effective(wanted);
  }

  /** A worker has been looked for in vain for a second. */
  get isAway(): boolean {
    return this.#parts.serving.isAway;
  }

  /** Whether the worker has this listener. */
  serves(listener: string): boolean {
    return this.#parts.serving.worker?.running.has(listener) === true;
  }

  /** Whether the worker has this listener of the load balancer at this address; an older one may have it elsewhere. */
  servesAt(key: string, listener: string, address: string): boolean {
    const { worker } = this.#parts.serving;
    if (worker?.running.has(listener) !== true) return false;
    const booted = worker.booted.get(key)?.listeners.find(({ name }) => name === listener);
    return booted?.addresses.includes(address) === true;
  }

  /**
   * Whether the worker may still serve anything of this load balancer but at these addresses; true while that cannot be
   * known.
   */
  servesAny(key: string, but: readonly string[] = []): boolean {
    const { worker } = this.#parts.serving;
    if (worker === undefined || worker.structure === '') return true;
    const listeners = worker.booted.get(key)?.listeners.filter(isServed) ?? [];
    return listeners.some(({ addresses }) => addresses.some((address) => !but.includes(address)));
  }

  /** What the worker has acknowledged of a listener's members, by name. */
  members(listener: string): ReadonlyMap<string, RunningServer> {
    return this.#parts.serving.worker?.running.get(listener)?.servers ?? new Map();
  }

  /** What checks have found of a listener's members, by name; empty without a monitor. */
  checks(listener: string): ReadonlyMap<string, CheckResult> {
    return this.#parts.checkWatch.results(listener);
  }

  /** What a listener and its members do now; undefined where HAProxy does not have it, or does not answer. */
  async stats(listener: string): Promise<ListenerStats | undefined> {
    const worker = this.serves(listener) ? this.#parts.serving.worker : undefined;
    return worker && readListenerStats(worker.runtime, listener).catch(() => undefined);
  }

  /** What HAProxy had to do in the last two minutes, a value a second, the newest last; fewer while none was there. */
  loads(): readonly Load[] {
    return this.#parts.caretaker.loads;
  }

  /** Reads HAProxy, as far as it answers. `isAwaited`: as fast as it answers, otherwise at a pace that no client notices. */
  async families(pace: { readonly isAwaited: boolean }): Promise<readonly MetricFamily[]> {
    return haproxyFamilies(await this.#parts.statistics.read(pace));
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    return this.#parts.quarantine.problemsOf(loadBalancer);
  }

  status(): HaproxyStatus {
    const { serving, arbiter, quarantine, supervisor, reloader, persister, hostPart } = this.#parts;
    const worker = serving.worker?.runtime.worker;
    return {
      version: worker?.version.text ?? '',
      workerPid: worker?.pid ?? 0,
      serving: worker !== undefined,
      reloadPending: [...arbiter.pending],
      serversToDelete: serving.serversToDelete,
      rejected: quarantine.rejected,
      blocked: quarantine.blocked.map(({ address, port, reason }) => `${address} port ${port}: ${reason}`),
      fault: (worker === undefined ? supervisor.fault : '') || reloader.fault || hostPart.fault,
      persistFault: persister.fault,
      maxConnections: hostPart.maxConnections,
    };
  }

  /** Lets go of HAProxy, which serves on; what was not yet written to disk is written. */
  async close(): Promise<void> {
    const { serving, supervisor, caretaker, checkWatch, arbiter, statistics, persister } = this.#parts;
    serving.close();
    supervisor.close();
    caretaker.close();
    checkWatch.close();
    arbiter.close();
    await statistics.close();
    await persister.close();
    serving.worker?.runtime.close();
  }

  /** Ends the HAProxy that was started here: for demonstrations and tests. Call close() first. Milliseconds. */
  async stopHaproxy(grace: number): Promise<void> {
    const { supervisor, paths } = this.#parts;
    if (supervisor.hasStarted) await stopHaproxy(paths, grace);
  }

  #prepare(): Promise<void> {
    this.#preparation ??= this.#prepareOnce();
    return this.#preparation;
  }

  async #prepareOnce(): Promise<void> {
    const { paths, quarantine, rejectionFile } = this.#parts;
    await makeFolder(dirname(paths.config), 0o700);
    await makeFolder(dirname(paths.adminSocket), 0o711);
    await forgetServerStates(paths).catch(() => undefined);
    const { text: version } = await haproxyVersion(this.#settings.haproxy);
    quarantine.restore(await rejectionFile.load(version));
  }

  /** What it lacks only a reload could bring, and that is over; what it refuses it need not have any more. */
  #tellLeaving(plans: readonly Plan[]): void {
    const { serving } = this.#parts;
    const { leaving } = serving;
    if (leaving === undefined) return;
    const plan = (key: string): Plan => this.#plan(leaving, key);
    void applyPlans(
      leaving,
      plans.map(({ key }) => plan(key)),
      plan,
    ).then(({ acknowledged }) => serving.acknowledged(leaving, acknowledged));
  }

  #plan({ running, booted }: ServingWorker, key: string): Plan {
    const { quarantine } = this.#parts;
    const wanted = this.#options.wanted.get(key);
    if (wanted === undefined) quarantine.forget(key);
    return planLoadBalancer(key, running, booted.get(key), wanted && quarantine.effective(wanted));
  }
}
