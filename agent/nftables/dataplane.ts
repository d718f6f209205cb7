// The kernel's dataplane, as the loop sees it: UDP and SCTP, which HAProxy does not forward, by rules of nftables. It plans
// which elements of the rules change and applies them through a long-lived nft; if that fails, it loads all rules again.
// A host without such listeners runs no nft.

import { readFile } from 'node:fs/promises';
import { memoByIdentity } from '../base/memo.ts';
import type { MetricFamily, MetricsDetail } from '../base/metric-family.ts';
import type { Dataplane } from '../dataplane/dataplane.ts';
import type { MemberFact, Outcome, Plan } from '../dataplane/forwarder.ts';
import type { Liveness } from '../dataplane/meter.ts';
import type { RecentFailures } from '../dataplane/recent-failures.ts';
import { type DataplaneStatus, type ListenerTraffic, type Load, NO_WORKER } from '../dataplane/status.ts';
import type { Log } from '../host/log.ts';
import type { Listener, LoadBalancer, OwnerKey, Problem } from '../model/load-balancer.ts';
import { listenersIn, objectOf, ownerOfListener } from '../model/names.ts';
import type { SourceGroups } from '../model/source-groups.ts';
import { AnswerWatch } from './checks/answer-watch.ts';
import { DirectReach } from './checks/direct-reach.ts';
import { MemberHealth } from './checks/member-health.ts';
import { kernelFamilies } from './families.ts';
import { placeKey } from './flows/flow-order.ts';
import { FlowWatch } from './flows/flow-watch.ts';
import { ForgetFlows } from './flows/forget-flows.ts';
import { KeptRules, NOT_SERVED, type RulesSettings } from './kept-rules.ts';
import { rulesFile } from './paths.ts';
import {
  isForKernel,
  type KernelListener,
  kernelListenerWithout,
  type ListenerChange,
} from './rules/kernel-listener.ts';
import { planListeners } from './rules/plan-listeners.ts';
import { downIn, placesIn } from './rules/rules-file.ts';
import type { KernelTable } from './table/kernel-table.ts';

export interface NftablesSettings extends RulesSettings {
  readonly metricsDetail: MetricsDetail;
}

export interface NftablesOptions {
  readonly settings: NftablesSettings;
  /** The desired state; read here, written by the loop. */
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** Makes the loop plan these load balancers again. */
  readonly replan: (keys: Iterable<OwnerKey>) => void;
  /** The verdict of these load balancers may be another one. */
  readonly onChanged: (keys: Iterable<OwnerKey>) => void;
  /** The addresses from which members get packets, by the settings in force. */
  readonly sources: () => SourceGroups;
  /** What HAProxy knows about the members of a listener that it checks. */
  readonly checkedMembers: (listener: string) => ReadonlyMap<string, MemberFact>;
  readonly metrics: { repaired(what: 'rules'): void };
  readonly log: Log;
}

export interface KernelPlan extends Plan {
  readonly changes: readonly ListenerChange[];
}

const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };
const NO_PLACES: ReadonlySet<string> = new Set();
const NO_MEMBERS: ReadonlyMap<string, MemberFact> = new Map();

export class NftablesDataplane implements Dataplane<KernelPlan, NftablesSettings> {
  readonly #options: NftablesOptions;
  readonly #rules: KeptRules;
  readonly #table: KernelTable;
  readonly #flows: ForgetFlows;
  readonly #watch: FlowWatch;
  readonly #health: MemberHealth;
  readonly #answers: AnswerWatch;
  readonly #reach: DirectReach;
  #detail: MetricsDetail;

  constructor(options: NftablesOptions) {
    this.#options = options;
    const { settings, desired, sources, checkedMembers, replan, onChanged, metrics, log } = options;
    const { netns } = settings;
    this.#detail = settings.metricsDetail;
    this.#flows = new ForgetFlows({ netns, log });
    this.#reach = new DirectReach({ desired, netns, onChanged: replan });
    this.#rules = new KeptRules({
      settings,
      desired,
      sources,
      listenerOf: (listener) =>
        kernelListenerWithout(listener, this.#health.down(listener), this.#reach.unreached(listener)),
      onLoaded: (listeners) => this.#flows.loaded(listeners),
      onChanged: replan,
      metrics,
      log,
    });
    this.#table = this.#rules.table;
    this.#watch = new FlowWatch({
      netns,
      listeners: () => this.#table.listeners(),
      sources,
      onChanged: (keys) => replan([...keys].filter((key) => desired.has(key))),
      log,
    });
    this.#answers = new AnswerWatch({
      // Without packets and bytes nothing is known of answers.
      listeners: () => (settings.kernelTraffic ? this.#table.listeners() : []),
      counts: () => this.#table.counts(),
      onChanged: (keys) => onChanged([...keys].filter((key) => desired.has(key))),
      log,
    });
    this.#health = new MemberHealth({
      desired,
      resultsOf: checkedMembers,
      refusals: () => this.#table.refusals(),
      netns,
      onChanged: replan,
    });
  }

  prepare(): void {}

  /** Replaces the rules of an agent before this one, in one transaction. Retries in the background. */
  async start(): Promise<void> {
    const last = await this.#lastFile();
    this.#health.restore(downIn(last));
    this.#flows.restore(Array.from(placesIn(last), placeKey));
    this.#health.changed(this.#options.desired.keys());
    await this.#reach.start();
    await this.#rules.start();
    this.#watch.start();
    this.#answers.start();
  }

  /** The source addresses may have changed. */
  configure({ metricsDetail }: NftablesSettings): void {
    this.#detail = metricsDetail;
    this.#rules.sourcesChanged();
  }

  async close(): Promise<void> {
    this.#watch.close();
    this.#answers.close();
    this.#reach.close();
    this.#health.close();
    this.#flows.close();
    await this.#rules.close();
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
    this.#rules.refused.forgetChanged(plans.map(({ key }) => key));
    this.#health.changed(plans.map(({ key }) => key));
    const due = plans.filter(({ effort }) => effort !== 'none');
    if (due.length === 0) return NOTHING;
    const keys = new Set(due.map(({ key }) => key));
    const changes = due.flatMap((plan) => plan.changes);
    // The loop plans them again when all rules are loaded.
    if (!(await this.#rules.change(changes))) return { ...NOTHING, pending: keys };
    this.#flows.changed(changes);
    for (const { before, after } of changes)
      if (before !== undefined && after === undefined) this.#health.forget(before.name);
    return { ...NOTHING, acknowledged: keys };
  }

  served(key: OwnerKey): LoadBalancer | 'pending' | undefined {
    const loadBalancer = this.#options.desired.get(key);
    const isWanted = this.#rules.wanted(loadBalancer).length > 0;
    if (!isWanted && this.#table.of(key).length === 0) return loadBalancer;
    if ((this.#rules.why !== '' || this.#rules.refused.has(loadBalancer)) && loadBalancer !== undefined)
      return withoutKernel(loadBalancer);
    return this.#table.isLoaded && this.#plan(key).effort === 'none' ? loadBalancer : 'pending';
  }

  serves(listener: string, address?: string): boolean {
    const found = this.#table.inKernel(ownerOfListener(listener)).find(({ name }) => name === listener);
    if (!this.#rules.isKnown || found === undefined || this.#rules.why !== '') return false;
    return address === undefined || found.addresses.includes(address);
  }

  continues(listener: string): boolean {
    return this.serves(listener) && this.#running(listener) !== undefined;
  }

  servesElsewhere(key: OwnerKey, addresses: readonly string[] = []): boolean {
    if (!this.#rules.isKnown) return true;
    return this.#table
      .of(key)
      .some((listener) => listener.addresses.some((each) => !addresses.includes(each)));
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    const found = this.#running(listener);
    if (found === undefined) return NO_MEMBERS;
    const desired = this.#desiredListener(listener);
    const down = desired && this.#health.down(desired);
    const unreached = desired && this.#reach.unreached(desired);
    const isChecked = desired?.pool.monitor !== undefined;
    return new Map(
      (unreached?.size ? (desired?.pool.members ?? []) : found.members).map(({ name, state, weight }) => {
        const why = unreached?.get(name);
        if (why !== undefined) return [name, { state, weight, isDown: true, cause: why }];
        const isDown = isChecked ? down?.has(name) : undefined;
        return [name, { state, weight, isDown, cause: down?.get(name) ?? '' }];
      }),
    );
  }

  /** Milliseconds since members have refused a packet of a client, by member. Never rejects. */
  refusals(): Promise<ReadonlyMap<string, number>> {
    return this.#table.refusals();
  }

  failures(listener: string): RecentFailures | undefined {
    return this.#answers.of(listener);
  }

  problemsOf(loadBalancer: LoadBalancer): readonly Problem[] {
    const { key, listeners } = loadBalancer;
    const refusal = this.#rules.refused.problemOf(loadBalancer);
    if (refusal !== undefined) return [refusal];
    if (this.#rules.why === '')
      return [
        ...this.#watch.problemsOf(key),
        ...this.#health.problemsOf(loadBalancer),
        ...this.#reach.problemsOf(loadBalancer),
      ];
    const ports = new Map(
      listeners.filter(isForKernel).map((each) => [`${each.protocol} port ${each.port}`, each]),
    );
    return Array.from(ports, ([words, { protocol, port }]) => ({
      object: objectOf(key),
      reason: 'ProtocolNotServed',
      message: `Cannot serve ${words}: ${this.#rules.why}`,
      port: { protocol, port },
    }));
  }

  status(): DataplaneStatus {
    return {
      ...NO_WORKER,
      serving: this.#rules.isKnown,
      fault: '',
      unserved:
        this.#rules.why === '' ? this.#rules.full || this.#watch.short : `${NOT_SERVED}: ${this.#rules.why}`,
      persistFault: this.#table.file.fault,
      files: this.#rules.isNeeded ? [this.#table.file] : [],
    };
  }

  async liveness(): Promise<Liveness> {
    return { control: '', listeners: this.#rules.isBroken ? this.status().unserved : '' };
  }

  async families(): Promise<readonly MetricFamily[]> {
    const listeners: Listener[] = [];
    for (const key of this.#table.keys())
      listeners.push(...(this.#options.desired.get(key)?.listeners.filter(isForKernel) ?? []));
    return kernelFamilies(listeners, {
      counts: await this.#table.counts(),
      countsTraffic: this.#options.settings.kernelTraffic,
      isUp: this.#rules.why === '',
      down: (listener) => new Map([...this.#health.down(listener), ...this.#reach.unreached(listener)]),
      detail: this.#detail,
    });
  }

  /** The kernel counts no open flows. */
  *traffic(): Generator<ListenerTraffic, void, void> {
    for (const [name, { flows, received, sent }] of this.#table.lastCounts)
      yield {
        name,
        total: flows.packets,
        bytesIn: received.bytes,
        bytesOut: sent.bytes,
        ...{ open: Number.NaN, errors: Number.NaN, retries: Number.NaN, latency: Number.NaN },
      };
  }

  /** The kernel counts no open flows. */
  async stats(): Promise<undefined> {
    return undefined;
  }

  loads(): readonly Load[] {
    return [];
  }

  /**
   * By the file that the last agent has written, and by the kernel: an agent that was killed may have changed rules that it
   * had not written yet.
   */
  async listenersBefore(): Promise<readonly string[]> {
    const written = await this.runningListeners();
    const places = written.length === 0 ? NO_PLACES : await this.#table.places();
    const forwarded = [...this.#options.desired.values()].flatMap(({ listeners }) =>
      listeners
        .filter(({ addresses, protocol, port }) =>
          addresses.some((address) => places.has(`${address} ${protocol.toLowerCase()} ${port}`)),
        )
        .map(({ name }) => name),
    );
    return [...new Set([...written, ...forwarded])];
  }

  /** From the file that the last agent has written. */
  async runningListeners(): Promise<readonly string[]> {
    const lines = (await this.#lastFile()).split('\n');
    return [...new Set(listenersIn(lines.filter((line) => line.startsWith('#')).join('\n')))];
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
    const after = this.#rules.wanted(this.#options.desired.get(key));
    const changes = planListeners(this.#table.of(key), after);
    const isDue = changes.length > 0 || (after.length > 0 && !this.#table.isLoaded);
    return { key, effort: isDue ? 'runtime' : 'none', changes };
  }
}

const withoutKernel = memoByIdentity((loadBalancer: LoadBalancer): LoadBalancer => {
  const listeners = loadBalancer.listeners.filter((listener) => !isForKernel(listener));
  return { ...loadBalancer, listeners };
});
