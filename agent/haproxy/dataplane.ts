// The HAProxy dataplane, as the loop sees it: plans what changed and applies it to the active worker.
// Behind it (parts.ts) one part finds or starts a worker, one replaces it if commands are not enough, one keeps the file, one
// finds changes by other processes, and one deletes removed servers.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { MetricFamily } from '../base/metric-family.ts';
import type { Dataplane } from '../dataplane/dataplane.ts';
import type { MemberFact, Outcome } from '../dataplane/forwarder.ts';
import type { Liveness, LivenessOptions, RoundPace } from '../dataplane/meter.ts';
import type { AffinityClient } from '../dataplane/moves.ts';
import type { RecentFailures } from '../dataplane/recent-failures.ts';
import type { DataplaneStatus, ListenerStats, ListenerTraffic, Load } from '../dataplane/status.ts';
import { makeFolder } from '../host/make-directory.ts';
import { isShortage } from '../host/shortage.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import { listenerOfBackend, listenersIn, ownerOf, ownerOfListener } from '../model/names.ts';
import { AfterApply } from './after-apply.ts';
import type { BootedWorker } from './booted-worker.ts';
import { causersOf } from './causers.ts';
import { isForHaproxy, isRoutePool } from './config/listener-config.ts';
import type { TablesCredentials, TablesSettings } from './config/shared-tables.ts';
import { statusOf } from './dataplane-status.ts';
import { killHaproxy, masterPid, stopHaproxy } from './instance/process.ts';
import type { HaproxyOptions } from './options.ts';
import { outcomeOf, reportOutcome } from './outcome.ts';
import { type HaproxyParts, haproxyParts } from './parts.ts';
import { type HaproxyPlan, planLoadBalancer, type Serving } from './plan.ts';
import { readRunning } from './readback.ts';
import { type HaproxySettings, ofLanding } from './settings.ts';
import { askOnce } from './socket/ask-once.ts';
import { isOfFrontend } from './socket/commands.ts';
import { askWorker } from './socket/master.ts';
import type { Runtime } from './socket/runtime.ts';
import { haproxyVersion } from './socket/version.ts';
import type { SpareOffer } from './spares.ts';
import { haproxyFamilies } from './stats/families.ts';
import { readListenerStats, sumOfStats } from './stats/listener-stats.ts';
import type { Statistics } from './stats/statistics.ts';
import { applyToWorkers } from './worker/apply-to-workers.ts';
import { HaproxyLiveness } from './worker/liveness.ts';
import { forgetServerStates } from './worker/server-states.ts';
import { affinityClients, rememberClients } from './worker/table-sync.ts';
import { withCertificates } from './write-certificates.ts';

/** Commands of a plan in the log. */
const MAX_LOGGED = 20;
/** How long a stop waits for the end of a start that is under way. */
const MOST_WAIT_FOR_START_MS = 5_000;
const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };
const NO_MEMBERS: ReadonlyMap<string, MemberFact> = new Map();

export class HaproxyDataplane implements Dataplane<HaproxyPlan, HaproxySettings> {
  readonly #options: HaproxyOptions;
  #settings: HaproxySettings;
  readonly #parts: HaproxyParts;
  #preparation: Promise<void> | undefined;
  readonly #liveness: HaproxyLiveness;
  /** False if another HAProxy's count for this one. */
  readonly #hasOwnStatistics: boolean;
  /** Keys that another HAProxy serves: their listeners take no more connections. */
  readonly #withdrawn = new Set<string>();
  readonly #afterApply: AfterApply;
  #isStarted = false;

  constructor(options: HaproxyOptions) {
    const { settings, desired } = options;
    this.#options = options;
    this.#settings = options.other?.isMain ? ofLanding(settings) : settings;
    this.#hasOwnStatistics = options.other?.statistics === undefined;
    this.#parts = haproxyParts(options, () => this.#settings);
    this.#afterApply = new AfterApply(options, this.#parts);
    this.#liveness = new HaproxyLiveness({
      ask: (timeoutMs) => this.#ask(timeoutMs),
      desired,
      facts: this,
      netns: settings.netns,
      workerPid: () => this.#parts.active.worker?.runtime.worker.pid ?? 0,
    });
  }

  get statistics(): Statistics {
    return this.#parts.statistics;
  }

  /** The active one; undefined if there is none. */
  get worker(): BootedWorker | undefined {
    return this.#parts.active.worker;
  }

  /** The listeners in the file that HAProxy starts from. */
  async keptListeners(): Promise<readonly string[]> {
    return listenersIn(await this.#fileText());
  }

  /** Without those whose members it only checks. */
  async listenersBefore(): Promise<readonly string[]> {
    const frontends = (await this.#fileText()).split('\n').filter((line) => line.startsWith('frontend '));
    return listenersIn(frontends.join('\n'));
  }

  /** Errors: those of the connection. */
  async withdraw(keys: Iterable<string>): Promise<void> {
    const { worker } = this;
    for (const key of keys) this.#withdrawn.add(key);
    const commands = this.plan(keys).flatMap((plan) => plan.commands.filter(isOfFrontend));
    if (worker === undefined || commands.length === 0) return;
    const replies = await worker.runtime.send(commands);
    for (const [at, command] of commands.entries()) if (replies[at]?.ok) worker.running.fold(command);
  }

  admit(keys: Iterable<string>): void {
    for (const key of keys) this.#withdrawn.delete(key);
  }

  /** Errors: those of the connection. */
  async affinity(keys: Iterable<string>): Promise<readonly AffinityClient[]> {
    return this.worker === undefined ? [] : affinityClients(this.worker, keys);
  }

  /** Errors: those of the connection. */
  async remember(clients: readonly AffinityClient[]): Promise<void> {
    if (this.worker !== undefined) await rememberClients(this.worker, clients);
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
    const { monitor, statistics, checkWatches, namespaceWatch, active } = this.#parts;
    const { failureWatch, errorWatch, logNames, logTargetWatch } = this.#parts;
    await this.#prepare();
    monitor.start();
    if (this.#hasOwnStatistics) await statistics.start();
    for (const watch of checkWatches) watch.start();
    namespaceWatch.start();
    failureWatch.start();
    errorWatch.start();
    logNames.start();
    logTargetWatch.start();
    this.#isStarted = true;
    await active.obtain();
  }

  /** [] while there is no worker: all load balancers are planned when there is one. */
  plan(keys: Iterable<string>): readonly HaproxyPlan[] {
    const { worker } = this.#parts.active;
    return worker === undefined ? [] : this.#planAll(worker, keys);
  }

  async apply(plans: readonly HaproxyPlan[]): Promise<Outcome> {
    const { active, persister, arbiter, checkWatches, quarantine, certificates, logNames } = this.#parts;
    const { ejector, errorWatch } = this.#parts;
    ejector.changed(plans.map(({ key }) => key));
    if (active.worker === undefined) return { ...NOTHING, pending: new Set(plans.map(({ key }) => key)) };
    const { desired, other, log } = this.#options;
    for (const { key } of plans) {
      if (!desired.has(key)) quarantine.forget(key);
      if (desired.get(key) === undefined) this.#withdrawn.delete(key);
    }
    for (const watch of checkWatches) watch.changed(plans.map(({ key }) => key));
    logNames.changed(plans.map(({ key }) => key));
    errorWatch.look();
    if (plans.some(({ effort }) => effort !== 'none')) persister.soon();
    // Clients reach a listener in both HAProxies until the one that it leaves has let go of it.
    const isGone = (key: string): boolean => !desired.has(key) && !other?.hasAlone(key);
    for (const { key, reload } of plans) {
      if (reload === undefined) continue;
      for (const namespace of causersOf(active.worker.booted.get(key), desired.get(key), key))
        arbiter.request(reload, namespace, reload === 'listener-removed' && isGone(key));
    }
    for (const { key, effort, reload, commands } of plans)
      if (effort !== 'none')
        log.debug('Carries out a plan', {
          loadBalancer: key,
          effort,
          reload,
          commands: commands.slice(0, MAX_LOGGED),
        });
    const planFor = (worker: BootedWorker, keys: readonly string[]) => this.#planAll(worker, keys);
    const written = await withCertificates(poolsFirst(plans), this.#parts, this.#options);
    const outcome = await applyToWorkers(active, written, planFor, () => arbiter.isReloading);
    if (outcome === undefined) return NOTHING;
    const { beyondRepair, lost, isReloading } = outcome;
    this.#afterApply.note(plans, outcome);
    reportOutcome(outcome, this.#options);
    for (const { certificate, reply } of outcome.refusedCertificates) {
      const served = active.worker?.running.certificate(certificate.name);
      await certificates.refuse(certificate, reply, served).catch((error) => persister.failed(error));
    }
    if ((beyondRepair.length > 0 && !isReloading) || lost?.retry === 'never') arbiter.request('repair');
    return outcomeOf(plans, outcome);
  }

  /** Takes new settings; those in haproxy.cfg come with a reload if they differ. */
  configure(settings: HaproxySettings): void {
    const { arbiter, checkWatches, namespaceWatch, active } = this.#parts;
    this.#settings = this.#options.other?.isMain ? ofLanding(settings) : settings;
    arbiter.retime();
    for (const watch of checkWatches) watch.retime();
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
    const { quarantine } = this.#parts;
    const [plan] = this.plan([key]);
    if (plan?.effort !== 'none') return 'pending';
    const desired = this.#options.desired.get(key);
    return desired && quarantine.effective(desired);
  }

  /** The worker may have booted with other addresses of the listener, or only checks its members. A pool has no address. */
  serves(listener: string, address?: string): boolean {
    const { worker } = this.#parts.active;
    if (worker?.running.has(listener) !== true || worker.running.unguarded.has(listener)) return false;
    const listeners = worker.booted.get(ownerOfListener(listener))?.listeners;
    const booted = listeners?.find(({ name }) => name === listener);
    if (booted === undefined || isRoutePool(booted)) return address === undefined;
    return isForHaproxy(booted) && (address === undefined || booted.addresses.includes(address));
  }

  continues(listener: string): boolean {
    // What is withdrawn has a frontend that refuses connections.
    if (!this.serves(listener) || this.#withdrawn.has(ownerOfListener(listener))) return false;
    const { next } = this.#parts.reloader;
    const listeners = next?.get(ownerOfListener(listener))?.listeners ?? [];
    return next === undefined || listeners.some((each) => each.name === listener && isForHaproxy(each));
  }

  servesElsewhere(key: string, addresses: readonly string[] = []): boolean {
    const { worker } = this.#parts.active;
    if (worker === undefined || worker.structure === '') return true;
    const listeners = worker.booted.get(key)?.listeners.filter(isForHaproxy) ?? [];
    return listeners.some((listener) => listener.addresses.some((address) => !addresses.includes(address)));
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    const { active, checkResults, ejector } = this.#parts;
    const servers = active.worker?.running.get(listener)?.servers;
    if (servers === undefined) return NO_MEMBERS;
    const checks = checkResults.get(listener);
    const facts = new Map<string, MemberFact>();
    for (const [name, { state, weight }] of servers) {
      const check = checks?.get(name);
      const rests = check?.isDown === false ? '' : ejector.causeOf(listener, name);
      const isDown = rests === '' ? check?.isDown : true;
      facts.set(name, { state, weight, isDown, cause: rests || (check?.cause ?? '') });
    }
    return facts;
  }

  failures(listener: string): RecentFailures | undefined {
    return this.#parts.failureWatch.of(listener);
  }

  async stats(listener: string): Promise<ListenerStats | undefined> {
    const worker = this.serves(listener) ? this.#parts.active.worker : undefined;
    const own = worker && (await readListenerStats(worker.runtime, listener).catch(() => undefined));
    if (own === undefined) return undefined;
    const old = this.#parts.statistics.oldWorkers.map((runtime) =>
      // A worker from before the listener has nothing of it, and one that ends has no answer.
      readListenerStats(runtime, listener).catch(() => undefined),
    );
    return sumOfStats([own, ...(await Promise.all(old)).filter((each) => each !== undefined)]);
  }

  loads(): readonly Load[] {
    return this.#parts.monitor.loads;
  }

  async families(pace: RoundPace): Promise<readonly MetricFamily[]> {
    return haproxyFamilies(await this.#parts.statistics.read(pace));
  }

  traffic(): Iterable<ListenerTraffic> {
    return this.#parts.statistics.traffic();
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    const { quarantine, namespaceWatch, certificates, refusedRows } = this.#parts;
    return [quarantine, namespaceWatch, certificates, refusedRows].flatMap((part) =>
      part.problemsOf(loadBalancer),
    );
  }

  status(): DataplaneStatus {
    return statusOf(this.#parts);
  }

  /** HAProxy continues without the agent; changes that are not on disk are written. */
  async close(): Promise<void> {
    const { active, supervisor, monitor, checkWatches, namespaceWatch, arbiter, statistics, persister } =
      this.#parts;
    const { failureWatch, errorWatch, logNames, logTargetWatch, logWriter } = this.#parts;
    await errorWatch.close();
    active.close();
    supervisor.close();
    monitor.close();
    for (const watch of checkWatches) watch.close();
    namespaceWatch.close();
    failureWatch.close();
    this.#afterApply.close();
    logNames.close();
    logTargetWatch.close();
    await logWriter?.close();
    arbiter.close();
    if (this.#hasOwnStatistics) await statistics.close();
    await persister.close();
    active.worker?.runtime.close();
  }

  /** HAProxy and the writer of the connection log; none if another program starts HAProxy, such as systemd. */
  async processes(): Promise<readonly number[]> {
    const { paths, isExternal, logWriter } = this.#parts;
    if (isExternal) return [];
    const pid = await masterPid(paths).catch(() => undefined);
    return [...(pid === undefined ? [] : [pid]), ...((await logWriter?.running()) ?? [])];
  }

  async stop(graceMs: number): Promise<void> {
    const { supervisor, paths, logWriter } = this.#parts;
    supervisor.close();
    // A HAProxy that has just been started has no pid file yet.
    await supervisor.idle(MOST_WAIT_FOR_START_MS);
    if (!supervisor.hasStarted) return;
    await stopHaproxy(paths, graceMs);
    // Last, because connections that end are logged.
    await logWriter?.stop();
  }

  get isStarting(): boolean {
    const { supervisor, finder, active } = this.#parts;
    return supervisor.isStarting || finder.isReading || active.isBetween;
  }

  /** Ends a HAProxy that does not answer any more: its addresses are free for another. Errors: as killHaproxy(). */
  async endHung(): Promise<void> {
    const { active, paths } = this.#parts;
    if (active.worker !== undefined || this.isStarting) return;
    const count = await killHaproxy(paths);
    if (count > 0)
      this.#options.log.error('HAProxy did not answer any more, and was ended', { processes: count });
  }

  #prepare(): Promise<void> {
    this.#preparation ??= this.#prepareOnce();
    return this.#preparation;
  }

  async #prepareOnce(): Promise<void> {
    const { paths, quarantine, rejectionFile, logWriter } = this.#parts;
    // HAProxy does not wait for it.
    void logWriter?.start();
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

  #servingOf(key: string, desired: LoadBalancer | undefined): Serving {
    if (desired !== undefined) return this.#withdrawn.has(key) ? 'withdrawn' : 'served';
    return this.#afterApply.isUnused(key) ? 'served' : 'left';
  }

  #fileText(): Promise<string> {
    return readFile(this.#parts.paths.config, 'utf8').catch(() => '');
  }

  #planAll(worker: BootedWorker, keys: Iterable<string>): readonly HaproxyPlan[] {
    const spares = worker.running.spares.offer();
    return Array.from(keys, (key) => this.#plan(worker, key, spares));
  }

  #plan({ running, booted }: BootedWorker, key: string, spares: SpareOffer): HaproxyPlan {
    const { paths, certificates, refusedRows, unneededRows, quarantine } = this.#parts;
    const desired = this.#options.desired.get(key);
    return planLoadBalancer({
      key,
      running,
      before: booted.get(key),
      after: desired && quarantine.effective(desired),
      certificates: { folder: paths.certificates, isRefused: certificates.isRefused },
      serving: this.#servingOf(key, desired),
      routes: { folder: paths.routes, tablesOf: refusedRows.tablesOf, isDue: unneededRows.isDue },
      spares,
    });
  }
}

/** A pool has its servers before a row leads to it. */
function poolsFirst(plans: readonly HaproxyPlan[]): readonly HaproxyPlan[] {
  const isPool = ({ key }: HaproxyPlan): boolean => ownerOf(key).kind === 'Pool';
  return [...plans.filter(isPool), ...plans.filter((plan) => !isPool(plan))];
}
