// Keeps the rules of nftables in the kernel: loads all of them at the start and after a failure, and again if another process
// removes or changes them. Knows what the kernel has, and why that does not work.

import { existsSync } from 'node:fs';
import { systemClock } from '../base/clock.ts';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { Fault } from '../base/fault.ts';
import { Reconciler } from '../base/reconciler.ts';
import { Rounds } from '../base/rounds.ts';
import type { Log } from '../host/log.ts';
import type { Family, Listener, LoadBalancer, OwnerKey } from '../model/load-balancer.ts';
import type { SourceGroups } from '../model/source-groups.ts';
import { KernelCheck } from './kernel-check.ts';
import { changeFile, rulesFile, tableOf } from './paths.ts';
import { isForKernel, type KernelListener, type ListenerChange } from './rules/kernel-listener.ts';
import { type Changed, ChangeWatch } from './table/change-watch.ts';
import { KernelTable } from './table/kernel-table.ts';
import { RefusedRules } from './table/refused-rules.ts';

export interface RulesSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  /** The program. */
  readonly nft: string;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  /** Whether to count packets and bytes. */
  readonly kernelTraffic: boolean;
}

export interface KeptRulesOptions {
  readonly settings: RulesSettings;
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** The addresses from which members get packets, by the settings in force. */
  readonly sources: () => SourceGroups;
  /** What the kernel should have of a listener. */
  readonly listenerOf: (listener: Listener) => KernelListener;
  /** All rules were loaded. */
  readonly onLoaded: (listeners: readonly KernelListener[]) => void;
  /** These load balancers may be served otherwise than before. */
  readonly onChanged: (keys: ReadonlySet<OwnerKey>) => void;
  readonly metrics: { repaired(what: 'rules'): void };
  readonly log: Log;
}

const CHECK_INTERVAL_MS = 500;
const LOG_PERIOD_MS = 60_000;
export const NOT_SERVED = 'Ports of the kernel path are not served';

export class KeptRules {
  readonly table: KernelTable;
  /** The rules that nft does not take. */
  readonly refused: RefusedRules;
  readonly #options: KeptRulesOptions;
  readonly #reconciler: Reconciler;
  readonly #rounds: Rounds;
  readonly #changes: ChangeWatch;
  readonly #kernel: KernelCheck;
  readonly #fault = new Fault();
  /** Does not lower the priority of a host that has never forwarded: its peer probably cannot forward either. */
  #hasWorked = false;
  /** Keys that had listeners before the last load. */
  #before: ReadonlySet<OwnerKey> = new Set();
  /** Repairs since one was logged, and when that was; they may follow one another within a second. */
  #unlogged = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;
  /** What another process has done to the tables since the last load, or may have done; '' for nothing. */
  #otherRules = '';
  #isKnown = false;

  constructor(options: KeptRulesOptions) {
    this.#options = options;
    const { settings, desired, sources, log } = options;
    const { stateDir, runtimeDir, nft, netns, kernelTraffic } = settings;
    this.table = new KernelTable({
      nft,
      netns,
      table: tableOf(stateDir),
      rulesFile: rulesFile(stateDir),
      changeFile: changeFile(runtimeDir),
      countsTraffic: kernelTraffic,
      sources,
      log,
    });
    this.refused = new RefusedRules({ desired, check: (listeners) => this.table.check(listeners), log });
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
    this.#changes = new ChangeWatch({
      netns,
      tables: this.table.tables,
      onChanged: (process, what) => this.#changedBy(process, what),
      onMissed: () => {
        this.#otherRules = 'Another process may have changed them while their changes were not watched';
      },
      log,
    });
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => this.#reconciler.fail(error),
    });
  }

  /** Replaces the rules of an agent before this one, in one transaction. Retries in the background. */
  async start(): Promise<void> {
    if (this.isNeeded || existsSync(rulesFile(this.#options.settings.stateDir)))
      await this.#reconciler.reconcile();
    this.#isKnown = true;
    this.#rounds.start();
  }

  /** The rules stay. */
  async close(): Promise<void> {
    this.#rounds.close();
    this.#changes.close();
    await this.#reconciler.close();
    await this.table.close();
  }

  /** The first load has ended, or there was nothing to load. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** '' if the rules work. */
  get why(): string {
    return this.#fault.text || this.#kernel.notForwarding;
  }

  /** They have worked, are needed, and work no more. */
  get isBroken(): boolean {
    return this.#hasWorked && this.why !== '' && this.isNeeded;
  }

  /** Why new flows are dropped, or about to be; '' if there is room. */
  get full(): string {
    return this.#kernel.full;
  }

  get isNeeded(): boolean {
    for (const { listeners } of this.#options.desired.values()) if (listeners.some(isForKernel)) return true;
    return false;
  }

  /** What the kernel should have of a load balancer: nothing if nft refuses it. */
  wanted(loadBalancer: LoadBalancer | undefined): readonly KernelListener[] {
    if (loadBalancer === undefined || this.refused.has(loadBalancer)) return [];
    return loadBalancer.listeners.filter(isForKernel).map(this.#options.listenerOf);
  }

  /** The source addresses may have changed. */
  sourcesChanged(): void {
    if (this.table.isLoaded && this.table.hasOtherSources) void this.#reconciler.reconcile();
  }

  /** False if all rules have to be loaded again, which takes longer: it continues after this. */
  async change(changes: readonly ListenerChange[]): Promise<boolean> {
    const isDone = this.table.isLoaded && (await this.#change(changes));
    if (!this.table.isLoaded && !this.#reconciler.isUnderWay && this.#fault.text === '')
      void this.#reconciler.reconcile();
    return isDone;
  }

  async #change(changes: readonly ListenerChange[]): Promise<boolean> {
    try {
      await this.table.change(changes);
      return true;
    } catch (error) {
      this.#options.log.warn('Cannot change the rules of nftables: loading all of them', {
        error: messageOf(error),
      });
      return false;
    }
  }

  async #load(): Promise<boolean> {
    const { desired, onLoaded } = this.#options;
    const listenersNow = (): readonly KernelListener[] =>
      [...desired.values()].flatMap((each) => this.wanted(each));
    let listeners = listenersNow();
    this.#before = new Set(this.table.keys());
    try {
      await this.table.load(listeners);
    } catch (error) {
      const isRefusal = error instanceof HeadgateError && error.code === 'NFT_FAILED';
      if (!isRefusal || !(await this.refused.find())) throw error;
      listeners = listenersNow();
      await this.table.load(listeners);
    }
    // Not before: the kernel's reports of a load take longer than the load.
    this.#changes.start();
    onLoaded(listeners);
    await this.#kernel.check();
    return false;
  }

  #settled(why: string): void {
    const { desired, onChanged, log } = this.#options;
    const isNews = this.#fault.set(why);
    if (isNews && why !== '') log.error(NOT_SERVED, { error: why });
    if (isNews && why === '') log.info('The rules of nftables are loaded again');
    this.#hasWorked ||= this.why === '';
    // Load balancers that changed or went during the load, or whose problems did.
    const keys = new Set([...this.#before, ...this.table.keys()]);
    for (const [key, { listeners }] of desired) if (listeners.some(isForKernel)) keys.add(key);
    if (this.#isKnown) onChanged(keys);
  }

  #families(): ReadonlySet<Family> {
    return new Set(this.table.listeners().map(({ family }) => family));
  }

  #forwards(why: string): void {
    const { desired, onChanged, log } = this.#options;
    if (why !== '') log.error(NOT_SERVED, { error: why });
    this.#hasWorked ||= this.why === '';
    onChanged(new Set([...this.table.keys()].filter((key) => desired.has(key))));
  }

  async #check(): Promise<void> {
    if (!this.table.isLoaded) return;
    await this.#kernel.checkAgain();
    await this.table.holdAgain();
    const otherRules = this.#otherRules;
    const why = await this.table
      .isIntact()
      .then((isIntact) => (isIntact ? '' : 'Another process has removed them'), messageOf);
    if (why !== '') await this.#repair(why);
    else if (otherRules !== '' && this.table.isLoaded) await this.#repair(otherRules);
  }

  /**
   * Reports come in the order of the changes: a load of this agent replaces what was there before it, a change of its elements
   * does not.
   */
  #changedBy(process: number, what: Changed): void {
    if (!this.table.hasStarted(process)) this.#otherRules = 'Another process has changed them';
    else if (what === 'rules') this.#otherRules = '';
  }

  async #repair(why: string): Promise<void> {
    const { metrics, log } = this.#options;
    this.#otherRules = '';
    this.#unlogged++;
    const now = systemClock.monotonic();
    if (now - this.#loggedAt >= LOG_PERIOD_MS) {
      log.warn('Loads the rules of nftables again', { why, times: this.#unlogged });
      this.#unlogged = 0;
      this.#loggedAt = now;
    }
    metrics.repaired('rules');
    await this.#reconciler.reconcile();
  }
}
