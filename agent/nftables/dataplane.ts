// The kernel's dataplane, as the loop sees it: UDP and SCTP, which HAProxy does not forward, by rules of nftables. It plans
// which elements of the rules change and applies them through a long-lived nft; if that fails, it loads all rules again.
// A host without such listeners runs no nft.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { Fault } from '../base/fault.ts';
import { memoByIdentity } from '../base/memo.ts';
import type { MetricFamily, MetricsDetail } from '../base/metric-family.ts';
import { Reconciler } from '../base/reconciler.ts';
import { Rounds } from '../base/rounds.ts';
import type { Dataplane, Liveness, MemberFact, Outcome, Plan } from '../dataplane/dataplane.ts';
import type { DataplaneStatus, ListenerTraffic, Load } from '../dataplane/status.ts';
import type { Log } from '../host/log.ts';
import type { Family, Listener, LoadBalancer, OwnerKey, Problem } from '../model/load-balancer.ts';
import { listenersIn, objectOf, ownerOfListener } from '../model/names.ts';
import { MemberHealth } from './checks/member-health.ts';
import { kernelFamilies } from './families.ts';
import { FlowWatch } from './flows/flow-watch.ts';
import { ForgetFlows } from './flows/forget-flows.ts';
import { KernelCheck } from './kernel-check.ts';
import { changeFile, rulesFile, tableOf } from './paths.ts';
import {
  isForKernel,
  type KernelListener,
  kernelListenerWithout,
  type ListenerChange,
} from './rules/kernel-listener.ts';
import { planListeners } from './rules/plan-listeners.ts';
import { downIn } from './rules/rules-file.ts';
import type { Sources } from './rules/sources.ts';
import { type Changed, ChangeWatch } from './table/change-watch.ts';
import { ElementAudit } from './table/element-audit.ts';
import { KernelTable } from './table/kernel-table.ts';
import { readElements } from './table/read-elements.ts';
import { RefusedRules } from './table/refused-rules.ts';

export interface NftablesSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  /** The program. */
  readonly nft: string;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  readonly metricsDetail: MetricsDetail;
  /** Whether to count packets and bytes. */
  readonly kernelTraffic: boolean;
}

export interface NftablesOptions {
  readonly settings: NftablesSettings;
  /** The desired state; read here, written by the loop. */
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** Makes the loop plan these load balancers again. */
  readonly replan: (keys: Iterable<OwnerKey>) => void;
  /** The addresses from which members get packets, by the settings in force. */
  readonly sources: () => Sources;
  /** What HAProxy knows about the members of a listener that it checks. */
  readonly checkedMembers: (listener: string) => ReadonlyMap<string, MemberFact>;
  readonly metrics: { repaired(what: 'rules' | 'element'): void };
  readonly log: Log;
}

export interface KernelPlan extends Plan {
  readonly changes: readonly ListenerChange[];
}

const CHECK_INTERVAL_MS = 500;
const AUDIT_NICE = 10;
const NOT_SERVED = 'Ports of the kernel path are not served';
const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };
const NO_MEMBERS: ReadonlyMap<string, MemberFact> = new Map();

export class NftablesDataplane implements Dataplane<KernelPlan, NftablesSettings> {
  readonly #options: NftablesOptions;
  readonly #table: KernelTable;
  readonly #flows: ForgetFlows;
  readonly #watch: FlowWatch;
  readonly #reconciler: Reconciler;
  readonly #rounds: Rounds;
  readonly #audit: ElementAudit;
  readonly #changes: ChangeWatch;
  readonly #fault = new Fault();
  readonly #kernel: KernelCheck;
  readonly #refused: RefusedRules;
  readonly #health: MemberHealth;
  #detail: MetricsDetail;
  /** A host that could never forward is no worse than its peer, which most likely cannot either. */
  #hasWorked = false;
  /** Keys that had listeners before the last load. */
  #before: ReadonlySet<OwnerKey> = new Set();
  /** Another process has changed more than elements since the last load. */
  #hasOtherRules = false;
  /** The first load has ended, or there was nothing to load. */
  #isKnown = false;

  constructor(options: NftablesOptions) {
    this.#options = options;
    const { settings, desired, sources, checkedMembers, replan, log } = options;
    const { stateDir, runtimeDir, nft, netns, kernelTraffic, metricsDetail } = settings;
    this.#detail = metricsDetail;
    this.#table = new KernelTable({
      nft,
      netns,
      table: tableOf(stateDir),
      rulesFile: rulesFile(stateDir),
      changeFile: changeFile(runtimeDir),
      countsTraffic: kernelTraffic,
      sources,
      log,
    });
    this.#flows = new ForgetFlows({ netns, log });
    this.#watch = new FlowWatch({
      netns,
      listeners: () => Array.from(this.#table.keys(), (key) => this.#table.of(key)).flat(),
      sources,
      onChanged: (keys) => this.#replanKnown(keys),
      log,
    });
    this.#refused = new RefusedRules({ desired, check: (listeners) => this.#table.check(listeners), log });
    this.#health = new MemberHealth({
      desired,
      resultsOf: checkedMembers,
      refusals: () => this.#table.refusals(),
      netns,
      onChanged: replan,
    });
    this.#kernel = new KernelCheck({
      netns,
      families: () => this.#families(),
      onForwarding: (why) => this.#forwards(why),
      log,
    });
    this.#reconciler = new Reconciler({
      step: () => this.#load(),
      onDone: () => this.#settled(''),
      onFailed: (error) => this.#settled(messageOf(error)),
      spacingMs: 0,
      backoff: { firstMs: 500, mostMs: 30_000 },
    });
    this.#audit = new ElementAudit({
      table: this.#table,
      read: (isUrgent, signal) =>
        readElements({ nft, netns, table: tableOf(stateDir), nice: isUrgent ? 0 : AUDIT_NICE }, signal),
      load: (why) => this.#repair(why),
      metrics: options.metrics,
      log,
    });
    this.#changes = new ChangeWatch({
      netns,
      tables: this.#table.tables,
      onChanged: (process, what) => this.#changedBy(process, what),
      log,
    });
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => this.#reconciler.fail(error),
    });
  }

  prepare(): void {}

  /** Replaces the rules of an agent before this one, in one transaction. Retries in the background. */
  async start(): Promise<void> {
    this.#health.restore(downIn(await this.#lastFile()));
    this.#health.changed(this.#options.desired.keys());
    if (this.#isNeeded || existsSync(rulesFile(this.#options.settings.stateDir)))
      await this.#reconciler.reconcile();
    this.#isKnown = true;
    this.#rounds.start();
    this.#watch.start();
    this.#audit.start();
  }

  /** The source addresses may have changed. */
  configure({ metricsDetail }: NftablesSettings): void {
    this.#detail = metricsDetail;
    if (this.#table.isLoaded && this.#table.hasOtherSources) void this.#reconciler.reconcile();
  }

  async close(): Promise<void> {
    this.#rounds.close();
    this.#watch.close();
    this.#health.close();
    this.#audit.close();
    this.#changes.close();
    this.#flows.close();
    await this.#reconciler.close();
    await this.#table.close();
  }

  /** The rules need no process. */
  async processes(): Promise<readonly number[]> {
    return [];
  }

  async stop(): Promise<void> {
    if (this.#table.isLoaded) await this.#table.remove().catch(() => undefined);
    await this.#table.close();
  }

  /** HAProxy has other results of its checks for these load balancers. */
  checked(keys: readonly OwnerKey[]): void {
    this.#health.checked(keys);
  }

  plan(keys: Iterable<OwnerKey>): readonly KernelPlan[] {
    return Array.from(keys, (key) => this.#plan(key));
  }

  async apply(plans: readonly KernelPlan[]): Promise<Outcome> {
    this.#refused.forgetChanged(plans.map(({ key }) => key));
    this.#health.changed(plans.map(({ key }) => key));
    const due = plans.filter(({ effort }) => effort !== 'none');
    if (due.length === 0) return NOTHING;
    const keys = new Set(due.map(({ key }) => key));
    const changes = due.flatMap((plan) => plan.changes);
    const isLoaded = this.#table.isLoaded && (await this.#change(changes));
    // All rules at once take longer: the loop goes on, and plans these load balancers again.
    if (!this.#table.isLoaded && !this.#reconciler.isUnderWay && this.#fault.text === '')
      void this.#reconciler.reconcile();
    if (!isLoaded) return { ...NOTHING, pending: keys };
    this.#flows.changed(changes);
    for (const { before, after } of changes)
      if (before !== undefined && after === undefined) this.#health.forget(before.name);
    return { ...NOTHING, acknowledged: keys };
  }

  served(key: OwnerKey): LoadBalancer | 'pending' | undefined {
    const loadBalancer = this.#options.desired.get(key);
    const isWanted = this.#listenersOf(loadBalancer).length > 0;
    if (!isWanted && this.#table.of(key).length === 0) return loadBalancer;
    if ((this.#why !== '' || this.#refused.has(loadBalancer)) && loadBalancer !== undefined)
      return withoutKernel(loadBalancer);
    return this.#table.isLoaded && this.#plan(key).effort === 'none' ? loadBalancer : 'pending';
  }

  serves(listener: string, address?: string): boolean {
    const found = this.#table.inKernel(ownerOfListener(listener)).find(({ name }) => name === listener);
    if (!this.#isKnown || found === undefined || this.#why !== '') return false;
    return address === undefined || found.addresses.includes(address);
  }

  continues(listener: string): boolean {
    return this.serves(listener) && this.#running(listener) !== undefined;
  }

  servesElsewhere(key: OwnerKey, addresses: readonly string[] = []): boolean {
    if (!this.#isKnown) return true;
    return this.#table
      .of(key)
      .some((listener) => listener.addresses.some((each) => !addresses.includes(each)));
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    const found = this.#running(listener);
    if (found === undefined) return NO_MEMBERS;
    const desired = this.#desiredListener(listener);
    const down = desired && this.#health.down(desired);
    const isChecked = desired?.pool.monitor !== undefined;
    return new Map(
      found.members.map(({ name, state, weight }) => {
        const isDown = isChecked ? down?.has(name) : undefined;
        return [name, { state, weight, isDown, cause: down?.get(name) ?? '' }];
      }),
    );
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    const { key, listeners } = loadBalancer;
    const refusal = this.#refused.problemOf(loadBalancer);
    if (refusal !== undefined) return [refusal];
    if (this.#why === '') return [...this.#watch.problemsOf(key), ...this.#health.problemsOf(loadBalancer)];
    const ports = new Map(
      listeners.filter(isForKernel).map((each) => [`${each.protocol} port ${each.port}`, each]),
    );
    return Array.from(ports, ([words, { protocol, port }]) => ({
      object: objectOf(key),
      reason: 'ProtocolNotServed',
      message: `Cannot serve ${words}: ${this.#why}`,
      port: { protocol, port },
    }));
  }

  status(): DataplaneStatus {
    return {
      version: '',
      workerPid: 0,
      serving: this.#isKnown,
      isAway: false,
      isReloading: false,
      reloadPending: [],
      serversToDelete: 0,
      rejected: 0,
      blocked: [],
      fault: '',
      landed: 0,
      unserved: this.#why === '' ? this.#kernel.full || this.#watch.short : `${NOT_SERVED}: ${this.#why}`,
      persistFault: this.#table.file.fault,
      files: this.#isNeeded ? [this.#table.file] : [],
      maxConnections: 0,
    };
  }

  async liveness(): Promise<Liveness> {
    const isBroken = this.#hasWorked && this.#why !== '' && this.#isNeeded;
    return { control: '', listeners: isBroken ? this.status().unserved : '' };
  }

  async families(): Promise<readonly MetricFamily[]> {
    const listeners: Listener[] = [];
    for (const key of this.#table.keys())
      listeners.push(...(this.#options.desired.get(key)?.listeners.filter(isForKernel) ?? []));
    return kernelFamilies(listeners, {
      counts: await this.#table.counts(),
      countsTraffic: this.#options.settings.kernelTraffic,
      isUp: this.#why === '',
      down: (listener) => this.#health.down(listener),
      detail: this.#detail,
    });
  }

  /** The kernel counts no open flows. */
  *traffic(): Generator<ListenerTraffic, void, void> {
    for (const [name, { flows }] of this.#table.lastCounts)
      yield { name, total: flows.packets, open: Number.NaN };
  }

  /** The kernel counts no open flows. */
  async stats(): Promise<undefined> {
    return undefined;
  }

  loads(): readonly Load[] {
    return [];
  }

  /** From the file that the last agent has written. */
  async listenersBefore(): Promise<readonly string[]> {
    const lines = (await this.#lastFile()).split('\n');
    return [...new Set(listenersIn(lines.filter((line) => line.startsWith('#')).join('\n')))];
  }

  runningListeners(): Promise<readonly string[]> {
    return this.listenersBefore();
  }

  /** '' if the rules work. */
  get #why(): string {
    return this.#fault.text || this.#kernel.notForwarding;
  }

  get #isNeeded(): boolean {
    for (const { listeners } of this.#options.desired.values()) if (listeners.some(isForKernel)) return true;
    return false;
  }

  /** What the last agent, or this one, has written. */
  #lastFile(): Promise<string> {
    return readFile(rulesFile(this.#options.settings.stateDir), 'utf8').catch(() => '');
  }

  #desiredListener(listener: string): Listener | undefined {
    const owner = this.#options.desired.get(ownerOfListener(listener));
    return owner?.listeners.find(({ name }) => name === listener);
  }

  #running(listener: string): KernelListener | undefined {
    return this.#table.of(ownerOfListener(listener)).find(({ name }) => name === listener);
  }

  #plan(key: OwnerKey): KernelPlan {
    const after = this.#listenersOf(this.#options.desired.get(key));
    const changes = planListeners(this.#table.of(key), after);
    const isDue = changes.length > 0 || (after.length > 0 && !this.#table.isLoaded);
    return { key, effort: isDue ? 'runtime' : 'none', changes };
  }

  async #change(changes: readonly ListenerChange[]): Promise<boolean> {
    try {
      await this.#table.change(changes);
      return true;
    } catch (error) {
      this.#options.log.warn('Cannot change the rules of nftables: loading all of them', {
        error: messageOf(error),
      });
      return false;
    }
  }

  async #load(): Promise<boolean> {
    const { desired } = this.#options;
    const listenersNow = (): readonly KernelListener[] =>
      [...desired.values()].flatMap((each) => this.#listenersOf(each));
    let listeners = listenersNow();
    this.#before = new Set(this.#table.keys());
    // Flows to the first listeners of this host have entries without a member.
    const isFirst = !existsSync(rulesFile(this.#options.settings.stateDir));
    try {
      await this.#table.load(listeners);
    } catch (error) {
      const isRefusal = error instanceof HeadgateError && error.code === 'NFT_FAILED';
      if (!isRefusal || !(await this.#refused.find())) throw error;
      listeners = listenersNow();
      await this.#table.load(listeners);
    }
    // Not before: the kernel's reports of a load take longer than the load.
    this.#changes.start();
    if (isFirst) this.#flows.changed(listeners.map((after) => ({ before: undefined, after })));
    await this.#kernel.check();
    return false;
  }

  /** Those for the kernel, unless nft refuses them. */
  #listenersOf(loadBalancer: LoadBalancer | undefined): readonly KernelListener[] {
    if (loadBalancer === undefined || this.#refused.has(loadBalancer)) return [];
    return loadBalancer.listeners
      .filter(isForKernel)
      .map((listener) => kernelListenerWithout(listener, this.#health.down(listener)));
  }

  #settled(why: string): void {
    const { desired, replan, log } = this.#options;
    const isNews = this.#fault.set(why);
    if (isNews && why !== '') log.error(NOT_SERVED, { error: why });
    if (isNews && why === '') log.info('The rules of nftables are loaded again');
    this.#hasWorked ||= this.#why === '';
    // Those that changed or went during the load, or whose problems did.
    const keys = new Set([...this.#before, ...this.#table.keys()]);
    for (const [key, { listeners }] of desired) if (listeners.some(isForKernel)) keys.add(key);
    if (this.#isKnown) replan(keys);
  }

  #families(): ReadonlySet<Family> {
    const families = new Set<Family>();
    for (const key of this.#table.keys()) for (const { family } of this.#table.of(key)) families.add(family);
    return families;
  }

  #forwards(why: string): void {
    if (why !== '') this.#options.log.error(NOT_SERVED, { error: why });
    this.#hasWorked ||= this.#why === '';
    this.#replanKnown(this.#table.keys());
  }

  #replanKnown(keys: Iterable<OwnerKey>): void {
    this.#options.replan([...keys].filter((key) => this.#options.desired.has(key)));
  }

  async #check(): Promise<void> {
    if (!this.#table.isLoaded) return;
    await this.#kernel.checkAgain();
    const hasOtherRules = this.#hasOtherRules;
    const why = await this.#table
      .isIntact()
      .then((isIntact) => (isIntact ? '' : 'Another process has removed them'), messageOf);
    if (why !== '') await this.#repair(why);
    else if (hasOtherRules && this.#table.isLoaded) await this.#repair('Another process has changed them');
  }

  /** Reports come in the order of the changes: a load of this agent replaces what was there before it. */
  #changedBy(process: number, what: Changed): void {
    const isOther = !this.#table.hasStarted(process);
    if (what === 'rules') this.#hasOtherRules = isOther;
    else if (isOther) this.#audit.changed();
  }

  async #repair(why: string): Promise<void> {
    const { metrics, log } = this.#options;
    this.#hasOtherRules = false;
    log.warn('Loads the rules of nftables again', { why });
    metrics.repaired('rules');
    await this.#reconciler.reconcile();
  }
}

const withoutKernel = memoByIdentity((loadBalancer: LoadBalancer): LoadBalancer => {
  const listeners = loadBalancer.listeners.filter((listener) => !isForKernel(listener));
  return { ...loadBalancer, listeners };
});
