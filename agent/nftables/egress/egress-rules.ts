// Lets connections that pods open leave from the VIPs of their Services: follows the load balancers, changes the rules of nftables
// within the same round, and loads all of them at the start, after a failure, and if another process has removed them. Without a
// Service that asks for it there are no rules, no process and no check.

import { existsSync, readFileSync } from 'node:fs';
import type { DiskFile } from '../../base/disk-file.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { familyOf } from '../../base/ip.ts';
import type { MetricFamily } from '../../base/metric-family.ts';
import { Reconciler } from '../../base/reconciler.ts';
import { Rounds } from '../../base/rounds.ts';
import type { EgressFacts, EgressStatus, EgressMapping as Mapping } from '../../dataplane/egress-facts.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer, OwnerKey, Problem } from '../../model/load-balancer.ts';
import { objectInWords, objectOf, ownerOf } from '../../model/names.ts';
import { conntrackUsage, whyFull } from '../flows/conntrack-usage.ts';
import { whyNotForwarding } from '../forwarding.ts';
import { egressFile, egressTableOf } from '../paths.ts';
import { EgressBook } from './egress-book.ts';
import { egressFamilies } from './egress-families.ts';
import { EgressTable } from './egress-table.ts';
import { mappedIn } from './egress-text.ts';
import { ForgetSources } from './forget-sources.ts';

export interface EgressSettings {
  readonly stateDir: string;
  /** The program. */
  readonly nft: string;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  /** Whether to count packets and bytes. */
  readonly kernelTraffic: boolean;
}

export interface EgressOptions {
  readonly settings: EgressSettings;
  /** What is known of these load balancers has changed. */
  readonly onChanged: (keys: Iterable<OwnerKey>) => void;
  readonly metrics: { repaired(what: 'rules'): void };
  readonly log: Log;
}

const CHECK_INTERVAL_MS = 500;
/** One of so many checks is of forwarding: each half minute. */
const FORWARDING_CHECKS = 60;
const NOT_SERVED = 'Connections of pods do not leave from VIPs';
const NO_PODS: ReadonlySet<string> = new Set();

export class EgressRules implements EgressFacts {
  readonly #options: EgressOptions;
  readonly #book = new EgressBook();
  readonly #table: EgressTable;
  readonly #forget: ForgetSources;
  readonly #reconciler: Reconciler;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();
  readonly #stays = new Fault();
  /** Pods that the kernel may not have as the book has them. */
  readonly #due = new Set<string>();
  /** Key: a Service; value: the addresses of its pods that an agent before this one had proved. */
  readonly #known: ReadonlyMap<OwnerKey, ReadonlySet<string>>;
  /** Why connections are dropped, or about to be; '' if there is room. */
  readonly #full = new Fault();
  #notForwarding = '';
  #checks = 0;
  #isStarted = false;

  constructor(options: EgressOptions) {
    const { settings, log } = options;
    const { stateDir, nft, netns, kernelTraffic } = settings;
    const file = egressFile(stateDir);
    this.#options = options;
    this.#known = mappedIn(existsSync(file) ? readFileSync(file, 'utf8') : '');
    this.#table = new EgressTable({
      nft,
      netns,
      table: egressTableOf(stateDir),
      file,
      countsTraffic: kernelTraffic,
      book: this.#book,
      log,
    });
    this.#forget = new ForgetSources({
      netns,
      onFault: (why) => {
        if (this.#stays.set(why) && why !== '')
          log.warn('Flows that pods opened before they had their VIP keep their source', { error: why });
      },
    });
    this.#reconciler = new Reconciler({
      step: () => this.#step(),
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

  /** These load balancers have changed; the rules follow in the background. */
  follow(keys: Iterable<OwnerKey>, loadBalancers: ReadonlyMap<OwnerKey, LoadBalancer>): void {
    const affected = new Set<OwnerKey>();
    let isChanged = false;
    for (const key of keys) {
      const now = loadBalancers.get(key);
      if (now?.egress === undefined && !this.#book.has(key)) continue;
      isChanged = true;
      const change = this.#book.update(key, now);
      for (const other of change.affected) affected.add(other);
      for (const pod of change.pods) this.#due.add(pod);
    }
    if (isChanged && this.#isStarted) void this.#reconciler.reconcile();
    if (affected.size > 0) this.#options.onChanged(affected);
  }

  /** Replaces the rules of an agent before this one. Retries in the background. */
  async start(): Promise<void> {
    this.#isStarted = true;
    if (!this.#book.isEmpty || existsSync(egressFile(this.#options.settings.stateDir)))
      await this.#reconciler.reconcile();
  }

  /** The rules stay. */
  async close(): Promise<void> {
    this.#isStarted = false;
    this.#rounds.close();
    this.#forget.close();
    await this.#reconciler.close();
    await this.#table.close();
  }

  /** Before close(): for demonstrations and tests. */
  async stop(): Promise<void> {
    if (this.#table.isLoaded) await this.#table.remove().catch(() => undefined);
  }

  /** The addresses of pods that an agent before this one had proved. */
  known(key: OwnerKey): ReadonlySet<string> {
    return this.#known.get(key) ?? NO_PODS;
  }

  status(): EgressStatus | undefined {
    if (this.#book.isEmpty) return undefined;
    const fault = this.#why === '' ? this.#full.text : `${NOT_SERVED}: ${this.#why}`;
    return { pods: this.#book.size, vips: this.#book.vips().size, fault };
  }

  /** The rules for the next boot; none if no Service asks for it. */
  get files(): readonly DiskFile[] {
    return this.#book.isEmpty ? [] : [this.#table.file];
  }

  /** How connections of this pod leave, by the rules that are desired; undefined: from no VIP. */
  mappingOf(pod: string): Mapping | undefined {
    return this.#book.mappingOf(pod);
  }

  /** As mappingOf(), by the pod's name, in each family. */
  mappingsOf(namespace: string, target: string): readonly Mapping[] {
    return [...this.#book.mappings()].filter(
      (each) => each.target === target && (namespace === '' || ownerOf(each.owner).namespace === namespace),
    );
  }

  problemsOf({ key }: Pick<LoadBalancer, 'key'>): readonly Problem[] {
    if (!this.#book.has(key)) return [];
    const object = objectOf(key);
    const problems: Problem[] = [];
    if (this.#why !== '')
      problems.push({ object, reason: 'EgressNotServed', message: `${NOT_SERVED}: ${this.#why}` });
    const lost = this.#book.lostBy(key);
    const [first] = lost;
    if (first !== undefined) {
      const more = lost.length === 1 ? '' : ` (and ${lost.length - 1} more)`;
      const message = `Connections of ${first.pod} leave from ${first.vip}, because ${objectInWords(first.owner)}, which has the pod too, is older${more}`;
      problems.push({ object, reason: 'EgressConflict', message });
    }
    return problems;
  }

  async families(): Promise<readonly MetricFamily[]> {
    if (this.#book.isEmpty) return [];
    const { kernelTraffic: countsTraffic } = this.#options.settings;
    return egressFamilies({ pods: this.#book.pods(), counts: await this.#table.counts(), countsTraffic });
  }

  get #why(): string {
    return this.#fault.text || this.#notForwarding;
  }

  async #step(): Promise<boolean> {
    const { log } = this.#options;
    if (this.#book.isEmpty) {
      this.#rounds.close();
      this.#due.clear();
      await this.#table.remove();
      log.info('No Service asks for egress any more: removed its rules');
      return false;
    }
    const due = [...this.#due];
    this.#due.clear();
    const changed = this.#table.isLoaded ? await this.#table.change(due) : undefined;
    if (changed !== undefined) {
      this.#forget.changed(changed.map(({ pod, after }) => [pod, after] as const));
      return false;
    }
    await this.#table.load();
    await this.#checkForwarding();
    this.#forget.changed([...this.#book.mappings()].map(({ pod, vip }) => [pod, vip] as const));
    this.#rounds.start();
    return false;
  }

  #settled(why: string): void {
    const { onChanged, log } = this.#options;
    if (!this.#fault.set(why)) return;
    if (why === '') log.info('The rules of egress are loaded again');
    else log.error(NOT_SERVED, { error: why });
    onChanged(this.#book.owners());
  }

  async #check(): Promise<void> {
    if (!this.#table.isLoaded) return;
    if (++this.#checks % FORWARDING_CHECKS === 0) await this.#checkForwarding();
    if (await this.#table.isIntact()) return;
    const { metrics, log } = this.#options;
    log.warn('Loads the rules of egress again', { why: 'Another process has removed them' });
    metrics.repaired('rules');
    await this.#reconciler.reconcile();
  }

  async #checkForwarding(): Promise<void> {
    const families = new Set([...this.#book.vips()].map(familyOf));
    const { netns } = this.#options.settings;
    const full = whyFull(await conntrackUsage(netns));
    if (this.#full.set(full && `New connections of pods may be dropped: ${full}`) && full !== '')
      this.#options.log.error('New connections of pods may be dropped', { error: full });
    const why = await whyNotForwarding(netns, families);
    if (why === this.#notForwarding) return;
    this.#notForwarding = why;
    if (why !== '') this.#options.log.error(NOT_SERVED, { error: why });
    this.#options.onChanged(this.#book.owners());
  }
}
