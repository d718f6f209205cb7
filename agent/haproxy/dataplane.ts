// The HAProxy dataplane, as the loop sees it: plans what changed and applies it to the active worker.
// Behind it (parts.ts) the supervisor gets a worker, the reloader replaces it if commands are not enough, the persister
// keeps the file, the monitor finds changes by other processes, and the reaper deletes removed servers.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { MetricFamily } from '../base/metric-family.ts';
import type {
  Dataplane,
  Liveness,
  LivenessOptions,
  MemberFact,
  Outcome,
  RoundPace,
} from '../dataplane/dataplane.ts';
import type { DataplaneStatus, ListenerStats, Load } from '../dataplane/status.ts';
import { makeFolder } from '../host/make-directory.ts';
import { isShortage } from '../host/shortage.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import { listenerOfBackend, ownerOfListener } from '../model/names.ts';
import { isForHaproxy } from './config/listener-config.ts';
import type { TablesCredentials, TablesSettings } from './config/shared-tables.ts';
import type { HaproxyOptions } from './options.ts';
import { outcomeOf, reportOutcome } from './outcome.ts';
import { type HaproxyParts, haproxyParts } from './parts.ts';
import { type HaproxyPlan, planLoadBalancer } from './plan.ts';
import { stopHaproxy } from './process/process.ts';
import { readRunning } from './readback.ts';
import type { HaproxySettings } from './settings.ts';
import { askOnce } from './socket/ask-once.ts';
import { askWorker } from './socket/master.ts';
import type { Runtime } from './socket/runtime.ts';
import { haproxyVersion } from './socket/version.ts';
import { haproxyFamilies } from './stats/families.ts';
import { readListenerStats } from './stats/listener-stats.ts';
import { applyToWorkers } from './worker/apply-to-workers.ts';
import { HaproxyLiveness } from './worker/liveness.ts';
import { forgetServerStates } from './worker/server-states.ts';
import type { BootedWorker } from './worker.ts';

/** Commands of a plan in the log. */
const MAX_LOGGED = 20;
const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };
const NO_MEMBERS: ReadonlyMap<string, MemberFact> = new Map();

export class HaproxyDataplane implements Dataplane<HaproxyPlan, HaproxySettings> {
  readonly #options: HaproxyOptions;
  #settings: HaproxySettings;
  readonly #parts: HaproxyParts;
  #preparation: Promise<void> | undefined;
  readonly #liveness: HaproxyLiveness;
  #isStarted = false;

  constructor(options: HaproxyOptions) {
    const { settings, desired } = options;
    this.#options = options;
    this.#settings = settings;
    this.#parts = haproxyParts(options, () => this.#settings);
    this.#liveness = new HaproxyLiveness({
      ask: (timeoutMs) => this.#ask(timeoutMs),
      desired,
      facts: this,
      netns: settings.netns,
      workerPid: () => this.#parts.active.worker?.runtime.worker.pid ?? 0,
    });
  }

  /** Does the part of start() that needs no load balancers. An error is reported by start(). */
  prepare(): void {
    this.#prepare().catch(() => undefined);
  }

  /**
   * Creates the folders, checks the version, and gets a worker; if the first attempt fails, it continues in the
   * background. Errors: HAPROXY_MISSING, HAPROXY_VERSION; those of the file system.
   */
  async start(): Promise<void> {
    const { monitor, statistics, checkWatch, namespaceWatch, active } = this.#parts;
    await this.#prepare();
    monitor.start();
    await statistics.start();
    checkWatch.start();
    namespaceWatch.start();
    this.#isStarted = true;
    await active.obtain();
  }

  /** [] while there is no worker: all load balancers are planned when there is one. */
  plan(keys: Iterable<string>): readonly HaproxyPlan[] {
    const { worker } = this.#parts.active;
    return worker === undefined ? [] : Array.from(keys, (key) => this.#plan(worker, key));
  }

  async apply(plans: readonly HaproxyPlan[]): Promise<Outcome> {
    const { active, persister, arbiter, checkWatch, quarantine } = this.#parts;
    if (active.worker === undefined) return { ...NOTHING, pending: new Set(plans.map(({ key }) => key)) };
    const { desired, log } = this.#options;
    for (const { key } of plans) if (!desired.has(key)) quarantine.forget(key);
    checkWatch.changed(plans.map(({ key }) => key));
    if (plans.some(({ effort }) => effort !== 'none')) persister.soon();
    for (const { reload } of plans) if (reload !== undefined) arbiter.request(reload);
    for (const { key, effort, reload, commands } of plans)
      if (effort !== 'none')
        log.debug('Carries out a plan', {
          loadBalancer: key,
          effort,
          reload,
          commands: commands.slice(0, MAX_LOGGED),
        });
    const planFor = (worker: BootedWorker, key: string): HaproxyPlan => this.#plan(worker, key);
    const outcome = await applyToWorkers(active, plans, planFor, () => arbiter.isReloading);
    if (outcome === undefined) return NOTHING;
    const { beyondRepair, lost, isReloading } = outcome;
    reportOutcome(outcome, this.#options);
    if ((beyondRepair.length > 0 && !isReloading) || lost?.retry === 'never') arbiter.request('repair');
    return outcomeOf(plans, outcome);
  }

  /** Takes new settings; those in haproxy.cfg come with a reload if they differ. */
  configure(settings: HaproxySettings): void {
    const { arbiter, checkWatch, namespaceWatch, active } = this.#parts;
    this.#settings = settings;
    arbiter.retime();
    checkWatch.retime();
    namespaceWatch.retime();
    active.globalChanged();
  }

  /**
   * Shares the stick tables with the peer's HAProxy from now on: with a reload, except before the start. Errors:
   * FILE_WRITE, and HAPROXY_REJECTED if the address and port cannot be bound.
   */
  async shareTables(settings: TablesSettings, credentials: TablesCredentials): Promise<void> {
    const { globalSection, active } = this.#parts;
    await globalSection.shareTables(settings, credentials);
    if (this.#isStarted) active.globalChanged();
  }

  /** Reads only, from the HAProxy that answers at the sockets. */
  async runningListeners(): Promise<readonly string[] | undefined> {
    const { finder, globalSection } = this.#parts;
    let runtime: Runtime | undefined;
    try {
      runtime = await finder.connect();
      if (runtime === undefined) return [];
      const names = (await readRunning(runtime, [], false, globalSection.aclIds.idOf)).names();
      return [...new Set([...names].map(listenerOfBackend))];
    } catch {
      return undefined;
    } finally {
      runtime?.close();
    }
  }

  liveness(options: LivenessOptions): Promise<Liveness> {
    return this.#liveness.look(options);
  }

  served(key: string): LoadBalancer | 'pending' | undefined {
    const { active, quarantine } = this.#parts;
    if (active.worker === undefined || this.#plan(active.worker, key).effort !== 'none') return 'pending';
    const desired = this.#options.desired.get(key);
    return desired && quarantine.effective(desired);
  }

  /** `address`: the worker may have booted with other addresses of the listener. */
  serves(listener: string, address?: string): boolean {
    const { worker } = this.#parts.active;
    if (worker?.running.has(listener) !== true) return false;
    if (address === undefined) return true;
    const booted = worker.booted.get(ownerOfListener(listener))?.listeners;
    return booted?.find(({ name }) => name === listener)?.addresses.includes(address) === true;
  }

  servesElsewhere(key: string, addresses: readonly string[] = []): boolean {
    const { worker } = this.#parts.active;
    if (worker === undefined || worker.structure === '') return true;
    const listeners = worker.booted.get(key)?.listeners.filter(isForHaproxy) ?? [];
    return listeners.some((listener) => listener.addresses.some((address) => !addresses.includes(address)));
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    const { active, checkWatch } = this.#parts;
    const servers = active.worker?.running.get(listener)?.servers;
    if (servers === undefined) return NO_MEMBERS;
    const checks = checkWatch.results(listener);
    const facts = new Map<string, MemberFact>();
    for (const [name, { state, weight }] of servers) {
      const check = checks.get(name);
      facts.set(name, { state, weight, isDown: check?.isDown, cause: check?.cause ?? '' });
    }
    return facts;
  }

  async stats(listener: string): Promise<ListenerStats | undefined> {
    const worker = this.serves(listener) ? this.#parts.active.worker : undefined;
    return worker && readListenerStats(worker.runtime, listener).catch(() => undefined);
  }

  loads(): readonly Load[] {
    return this.#parts.monitor.loads;
  }

  async families(pace: RoundPace): Promise<readonly MetricFamily[]> {
    return haproxyFamilies(await this.#parts.statistics.read(pace));
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    const { quarantine, namespaceWatch } = this.#parts;
    return [...quarantine.problemsOf(loadBalancer), ...namespaceWatch.problemsOf(loadBalancer)];
  }

  status(): DataplaneStatus {
    const { active, arbiter, quarantine, supervisor, reloader, monitor, persister, globalSection } =
      this.#parts;
    const worker = active.worker?.runtime.worker;
    return {
      version: worker?.version.text ?? '',
      workerPid: worker?.pid ?? 0,
      serving: worker !== undefined,
      isAway: active.isAway,
      isReloading: arbiter.isReloading,
      reloadPending: [...arbiter.pending],
      serversToDelete: active.serversToDelete,
      rejected: quarantine.rejected,
      blocked: quarantine.blocked.map(({ address, port, reason }) => `${address} port ${port}: ${reason}`),
      fault:
        (worker === undefined ? supervisor.fault : '') ||
        monitor.fault ||
        reloader.fault ||
        globalSection.fault,
      unserved: '',
      persistFault: persister.fault,
      maxConnections: globalSection.maxConnections,
    };
  }

  /** HAProxy continues without the agent; changes that are not on disk are written. */
  async close(): Promise<void> {
    const { active, supervisor, monitor, checkWatch, namespaceWatch, arbiter, statistics, persister } =
      this.#parts;
    active.close();
    supervisor.close();
    monitor.close();
    checkWatch.close();
    namespaceWatch.close();
    arbiter.close();
    await statistics.close();
    await persister.close();
    active.worker?.runtime.close();
  }

  async stop(graceMs: number): Promise<void> {
    const { supervisor, paths } = this.#parts;
    if (supervisor.hasStarted) await stopHaproxy(paths, graceMs);
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

  /** On a new connection; on the existing one if the agent has no descriptors left. */
  async #ask(timeoutMs: number): Promise<void> {
    const { paths, active } = this.#parts;
    const runtime = active.worker?.runtime;
    try {
      if (runtime === undefined || existsSync(paths.adminSocket))
        await askOnce(paths.adminSocket, 'show info', { timeoutMs });
      else await askWorker(paths.masterSocket, runtime.worker.pid, { timeoutMs });
    } catch (error) {
      if (runtime === undefined || !isShortage(error)) throw error;
      await runtime.ask('show info');
    }
  }

  #plan({ running, booted }: BootedWorker, key: string): HaproxyPlan {
    const desired = this.#options.desired.get(key);
    return planLoadBalancer(
      key,
      running,
      booted.get(key),
      desired && this.#parts.quarantine.effective(desired),
    );
  }
}
