// The kernel's dataplane, as the loop sees it: UDP and SCTP, which HAProxy does not forward, by rules of nftables. It plans
// which elements of the rules change and applies them through a long-lived nft; if that fails, it loads all rules again.
// A host without such listeners runs no nft.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { messageOf } from '../base/errors.ts';
import { Fault } from '../base/fault.ts';
import { memoByIdentity } from '../base/memo.ts';
import type { MetricFamily } from '../base/metric-family.ts';
import { Reconciler } from '../base/reconciler.ts';
import { Rounds } from '../base/rounds.ts';
import { sameValue } from '../base/same-value.ts';
import type { Dataplane, Liveness, MemberFact, Outcome, Plan } from '../dataplane/dataplane.ts';
import type { DataplaneStatus, Load } from '../dataplane/status.ts';
import type { Log } from '../host/log.ts';
import type { Family, Listener, LoadBalancer, OwnerKey, Problem } from '../model/load-balancer.ts';
import { listenersIn, objectOf, ownerOfListener } from '../model/names.ts';
import { kernelFamilies } from './families.ts';
import { ForgetFlows } from './forget-flows.ts';
import { whyNotForwarding } from './forwarding.ts';
import { isForKernel, type KernelListener, kernelListener } from './kernel-listener.ts';
import { KernelTable, type ListenerChange } from './kernel-table.ts';
import { rulesFile, tableOf } from './paths.ts';

export interface NftablesSettings {
  readonly stateDir: string;
  /** The program. */
  readonly nft: string;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
}

export interface NftablesOptions {
  readonly settings: NftablesSettings;
  /** The desired state; read here, written by the loop. */
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** Makes the loop plan these load balancers again. */
  readonly replan: (keys: Iterable<OwnerKey>) => void;
  /** The address from which members get the packets to a VIP, which goes with the VIP; '' for this host's own. */
  readonly sourceOf: (vip: string) => string;
  /** The addresses that sourceOf() gives, which move between the hosts of a pair. */
  readonly anchors: () => readonly string[];
  /** Whether HAProxy serves a listener that was the kernel's: until then the kernel keeps it. */
  readonly isWithHaproxy: (listener: string) => boolean;
  readonly metrics: { repaired(what: 'rules'): void };
  readonly log: Log;
}

export interface KernelPlan extends Plan {
  readonly changes: readonly ListenerChange[];
}

const CHECK_INTERVAL_MS = 500;
/** Of so many checks one looks whether the kernel forwards: each half minute, and each two seconds while it does not. */
const FORWARDING_CHECKS = 60;
const FAULT_CHECKS = 4;
const NOT_SERVED = 'Ports of the kernel path are not served';
const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };
const NO_MEMBERS: ReadonlyMap<string, MemberFact> = new Map();

export class NftablesDataplane implements Dataplane<KernelPlan, NftablesSettings> {
  readonly #options: NftablesOptions;
  readonly #table: KernelTable;
  readonly #flows: ForgetFlows;
  readonly #reconciler: Reconciler;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();
  /** Why packets are not forwarded, although the rules are there. */
  readonly #forwarding = new Fault();
  #checks = 0;
  /** A host that could never forward is no worse than its peer, which most likely cannot either. */
  #hasWorked = false;
  /** The first load has ended, or there was nothing to load. */
  #isKnown = false;

  constructor(options: NftablesOptions) {
    this.#options = options;
    const { settings, sourceOf, anchors, log } = options;
    const { stateDir, nft, netns } = settings;
    this.#table = new KernelTable({
      nft,
      netns,
      table: tableOf(stateDir),
      rulesFile: rulesFile(stateDir),
      sourceOf,
      anchors,
      log,
    });
    this.#flows = new ForgetFlows({ netns, log });
    this.#reconciler = new Reconciler({
      step: () => this.#load(),
      onDone: () => this.#settled(''),
      onFailed: (error) => this.#settled(messageOf(error)),
      spacingMs: 0,
      backoff: { firstMs: 500, mostMs: 30_000 },
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
    if (this.#isNeeded || existsSync(rulesFile(this.#options.settings.stateDir)))
      await this.#reconciler.reconcile();
    this.#isKnown = true;
    this.#rounds.start();
  }

  /** The sources of VIPs may have changed. */
  configure(): void {
    if (this.#table.isLoaded && this.#table.hasOtherSources) void this.#reconciler.reconcile();
  }

  async close(): Promise<void> {
    this.#rounds.close();
    this.#flows.close();
    await this.#reconciler.close();
    await this.#table.close();
  }

  async stop(): Promise<void> {
    if (this.#table.isLoaded) await this.#table.remove().catch(() => undefined);
    await this.#table.close();
  }

  plan(keys: Iterable<OwnerKey>): readonly KernelPlan[] {
    return Array.from(keys, (key) => this.#plan(key));
  }

  async apply(plans: readonly KernelPlan[]): Promise<Outcome> {
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
    return { ...NOTHING, acknowledged: keys };
  }

  served(key: OwnerKey): LoadBalancer | 'pending' | undefined {
    const loadBalancer = this.#options.desired.get(key);
    const isWanted = loadBalancer?.listeners.some(isForKernel) === true;
    if (!isWanted && this.#table.of(key).length === 0) return loadBalancer;
    if (this.#why !== '' && loadBalancer !== undefined) return withoutKernel(loadBalancer);
    return this.#table.isLoaded && this.#plan(key).effort === 'none' ? loadBalancer : 'pending';
  }

  serves(listener: string, address?: string): boolean {
    const found = this.#running(listener);
    if (found === undefined || this.#why !== '') return false;
    return address === undefined || found.addresses.includes(address);
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
    return new Map(
      found.members.map(({ name, state, weight }) => [name, { state, weight, isDown: undefined, cause: '' }]),
    );
  }

  problemsOf({ key, listeners }: LoadBalancer): readonly Problem[] {
    if (this.#why === '') return [];
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
      unserved: this.#why && `${NOT_SERVED}: ${this.#why}`,
      persistFault: this.#table.persistFault,
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
    return kernelFamilies(listeners, await this.#table.counts(), this.#why === '');
  }

  /** The kernel counts new flows only. */
  async stats(): Promise<undefined> {
    return undefined;
  }

  loads(): readonly Load[] {
    return [];
  }

  /** From the file that the last agent has written. */
  async runningListeners(): Promise<readonly string[] | undefined> {
    const text = await readFile(rulesFile(this.#options.settings.stateDir), 'utf8').catch(() => '');
    return listenersIn(
      text
        .split('\n')
        .filter((line) => line.startsWith('#'))
        .join('\n'),
    );
  }

  /** '' if the rules work. */
  get #why(): string {
    return this.#fault.text || this.#forwarding.text;
  }

  get #isNeeded(): boolean {
    for (const { listeners } of this.#options.desired.values()) if (listeners.some(isForKernel)) return true;
    return false;
  }

  #running(listener: string): KernelListener | undefined {
    return this.#table.of(ownerOfListener(listener)).find(({ name }) => name === listener);
  }

  #plan(key: OwnerKey): KernelPlan {
    const before = this.#table.of(key);
    const after = this.#options.desired.get(key)?.listeners.filter(isForKernel).map(kernelListener) ?? [];
    const changes: ListenerChange[] = [];
    for (const now of after) {
      const was = before.find(({ name }) => name === now.name);
      if (was !== now && !sameValue(was, now)) changes.push({ before: was, after: now });
    }
    for (const was of before)
      if (!after.some(({ name }) => name === was.name) && !this.#isOnItsWay(key, was.name))
        changes.push({ before: was, after: undefined });
    const isDue = changes.length > 0 || (after.length > 0 && !this.#table.isLoaded);
    return { key, effort: isDue ? 'runtime' : 'none', changes };
  }

  /** It moves to HAProxy, which has yet to be reloaded. */
  #isOnItsWay(key: OwnerKey, listener: string): boolean {
    const { desired, isWithHaproxy } = this.#options;
    const now = desired.get(key)?.listeners.find(({ name }) => name === listener);
    return now !== undefined && now.addresses.length > 0 && !isForKernel(now) && !isWithHaproxy(listener);
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
    const listeners = [...desired.values()].flatMap((each) =>
      each.listeners.filter(isForKernel).map(kernelListener),
    );
    // Flows to the first listeners of this host have entries without a member.
    const isFirst = !existsSync(rulesFile(this.#options.settings.stateDir));
    await this.#table.load(listeners);
    if (isFirst) this.#flows.changed(listeners.map((after) => ({ before: undefined, after })));
    await this.#checkForwarding();
    return false;
  }

  #settled(why: string): void {
    const { desired, replan, log } = this.#options;
    const isNews = this.#fault.set(why);
    if (isNews && why !== '') log.error(NOT_SERVED, { error: why });
    if (isNews && why === '') log.info('The rules of nftables are loaded again');
    this.#hasWorked ||= this.#why === '';
    // Those that changed during the load, or whose problems did.
    const keys = new Set(this.#table.keys());
    for (const [key, { listeners }] of desired) if (listeners.some(isForKernel)) keys.add(key);
    if (this.#isKnown) replan(keys);
  }

  async #check(): Promise<void> {
    if (!this.#table.isLoaded) return;
    const every = this.#forwarding.text === '' ? FORWARDING_CHECKS : FAULT_CHECKS;
    if (this.#checks++ % every === 0) await this.#checkForwarding();
    const why = await this.#table
      .isIntact()
      .then((isIntact) => (isIntact ? '' : 'Another process has removed them'), messageOf);
    if (why === '') return;
    const { metrics, log } = this.#options;
    log.warn('Loads the rules of nftables again', { why });
    metrics.repaired('rules');
    await this.#reconciler.reconcile();
  }

  async #checkForwarding(): Promise<void> {
    const { settings, desired, log } = this.#options;
    const families = new Set<Family>();
    for (const key of this.#table.keys()) for (const { family } of this.#table.of(key)) families.add(family);
    const why = await whyNotForwarding(settings.netns, families);
    if (!this.#forwarding.set(why)) return;
    if (why !== '') log.error(NOT_SERVED, { error: why });
    this.#hasWorked ||= this.#why === '';
    this.#options.replan([...this.#table.keys()].filter((key) => desired.has(key)));
  }
}

const withoutKernel = memoByIdentity((loadBalancer: LoadBalancer): LoadBalancer => {
  const listeners = loadBalancer.listeners.filter((listener) => !isForKernel(listener));
  return { ...loadBalancer, listeners };
});
