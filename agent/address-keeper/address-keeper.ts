// Who has which address of the pools: takes what changes of pools, claims, Services and the lead, has addresses.ts
// decide, and has the claims kept (kept-claims.ts) before anybody is told of an address.
// Owns the stores, the provisioner and a timer; large decisions are made in slices.

import { join } from 'node:path';
import {
  type AddressClaim,
  Addresses,
  type AddressesChange,
  type AddressesOutcome,
  type AddressRequest,
} from '../addresses/addresses.ts';
import { Slice } from '../base/slice.ts';
import type { Log } from '../host/log.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import type { Cluster, Differences } from '../kubernetes/cluster.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { Settings } from '../settings/settings.ts';
import type { PoolAddresses } from '../translate/service/service-vips.ts';
import type { TranslateSettings } from '../translate/translate-settings.ts';
import { Provisioning } from './address-provisioning.ts';
import { type AddressStatus, poolStatuses } from './address-status.ts';
import { askedAddress, type PoolsView } from './asked-address.ts';
import { type ClaimHome, KeptClaims } from './kept-claims.ts';
import { PoolReports } from './pool-reports.ts';

export type { AddressStatus } from './address-status.ts';

export interface AddressKeeperOptions {
  readonly cluster: Cluster;
  readonly settings: AddressSettings;
  readonly translating: TranslateSettings;
  readonly api: KubernetesApi | undefined;
  /** Asked at each change: it is not known before the API server has answered, and may be another one later. */
  readonly home: () => ClaimHome;
  /** The agent that writes to the cluster gives its addresses; undefined without a cluster. */
  readonly writers: AddressWriters | undefined;
  /** These have other addresses now. */
  readonly onChanged: (services: Iterable<string>) => void;
  /** The claim of this Service is kept: its address may be told. */
  readonly onKept: (service: string) => void;
  readonly onProblems: (problems: readonly Problem[]) => void;
  readonly log: Log;
  readonly metrics: AddressMetrics;
}

export interface AddressWriters {
  readonly isLeader: boolean;
  /** The API server lets no agent with these rights write. */
  readonly isBarred: boolean;
  onLeader(callback: () => void): void;
  readonly services: {
    /** Resolves with true once an address may be taken for the Service. */
    requestFinalizer(service: string, uid: string): Promise<boolean>;
  };
}

export type AddressSettings = Pick<Settings, 'pools' | 'releaseAfter' | 'provisioner' | 'stateDir'>;

export interface AddressMetrics {
  claimWritten(result: 'done' | 'conflict' | 'failed'): void;
  provisioned(action: 'assign' | 'release', result: 'done' | 'failed'): void;
}

/** Below the state directory. */
export const CLAIM_FILE = ['addresses', 'claims.json'] as const;
/** Milliseconds: the longest that a timer takes. */
const LONGEST_TIMER = 2 ** 31 - 1;

export class AddressKeeper {
  readonly #options: AddressKeeperOptions;
  readonly #addresses = new Addresses();
  readonly #kept: KeptClaims;
  readonly #reports: PoolReports;
  #settings: AddressSettings;
  #translating: TranslateSettings;
  #provisioning: Provisioning | undefined;
  /** What a Service was when it was looked at last. */
  readonly #seen = new Map<string, object | undefined>();
  #problems: readonly Problem[] = [];
  #fileProblems: readonly Problem[] = [];
  #leads = false;
  #hasPools = false;

  /** What has changed and has to be decided. */
  readonly #services = new Set<string>();
  readonly #claims = new Set<string>();
  #overruling: AddressClaim[] = [];
  #poolsChanged = false;
  #hasTurned = false;
  #isDue = false;
  #isStarted = false;
  #isWorking = false;
  #isClosed = false;
  /** Where assign() waits for the answer. */
  #answer: Set<string> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AddressKeeperOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#translating = options.translating;
    const { writers } = options;
    const isLeader = (): boolean => writers?.isLeader ?? false;
    this.#kept = new KeptClaims({
      ...options,
      isLeader,
      requestFinalizer: async (service, uid) => writers?.services.requestFinalizer(service, uid) ?? false,
      addresses: this.#addresses,
      path: join(options.settings.stateDir, ...CLAIM_FILE),
      onOverruled: (claim) => {
        this.#overruling.push(claim);
        void this.#work();
      },
      onKept: (name, claim) => this.#onKept(name, claim),
    });
    this.#reports = new PoolReports({ ...options, isLeader, addresses: this.#addresses });
    writers?.onLeader(() => this.take());
  }

  /** Everything that there is has to be in the cluster by now. Resolves when all of it is decided. */
  async start(): Promise<void> {
    const { claims, problems } = await this.#kept.read();
    this.#fileProblems = problems;
    this.#addresses.update({ claims: { upserted: claims } }, Date.now());
    for (const { key } of this.#options.cluster.claims()) this.#claims.add(key);
    this.#lookAtEverything();
    this.#isStarted = true;
    await this.#work();
  }

  /** Pools and claims that have changed; or the lead, or where claims belong. */
  take(
    { poolsChanged, claims }: Pick<Differences, 'poolsChanged' | 'claims'> = {
      poolsChanged: false,
      claims: new Set(),
    },
  ): void {
    if (poolsChanged) this.#lookAtEverything();
    for (const name of claims) this.#claims.add(name);
    void this.#work();
  }

  /** All that is wrong now with objects of the API. */
  cannotRead(problems: readonly Problem[]): void {
    this.#reports.cannotRead(problems);
  }

  /**
   * Brings what these Services have to what they ask for now, and returns those that have other addresses: at once,
   * unless something large is being decided; then `onChanged` tells.
   */
  assign(services: Iterable<string>): ReadonlySet<string> {
    for (const key of services) {
      const service = this.#options.cluster.service(key);
      if (this.#seen.get(key) !== service) this.#services.add(key);
    }
    if (this.#services.size === 0) return new Set();
    const answer = new Set<string>();
    this.#answer = answer;
    void this.#work();
    this.#answer = undefined;
    return answer;
  }

  /** What the Service has of the pools; undefined for one that has the addresses that it names itself. */
  readonly ofPools = (key: string): PoolAddresses | undefined => {
    const assignment = this.#addresses.assignment(key);
    if (assignment === undefined) return undefined;
    const { addresses } = assignment;
    // What people know already is served until whoever gives the addresses has decided.
    const published = this.#options.cluster.service(key)?.statusIPs ?? [];
    if (!this.#leads && addresses.length === 0 && published.length > 0)
      return { addresses: published.map((address) => ({ address, ports: [] })), problems: [] };
    const failed = this.#provisioning?.problemsOf(key) ?? [];
    return {
      addresses,
      problems: failed.length === 0 ? assignment.problems : [...assignment.problems, ...failed],
    };
  };

  /** The addresses of the Service may be told: whatever happens now, it has them. */
  isKept(key: string): boolean {
    return this.#addresses
      .claimsOf(key)
      .every(({ heldUntil, name }) => heldUntil !== 0 || this.#kept.has(name));
  }

  configure(settings: AddressSettings, translating: TranslateSettings): void {
    const isOther = settings.provisioner !== this.#settings.provisioner;
    this.#settings = settings;
    this.#translating = translating;
    if (isOther) this.#provision();
    this.#lookAtEverything();
    void this.#work();
  }

  /** Of pools, of the file of claims, and of addresses that could not be released. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  status(): AddressStatus {
    const { home, unkept, fault } = this.#kept;
    const faults = [
      fault && `Claims cannot be kept: ${fault}`,
      this.#leads && this.#reports.fault && `The status of pools cannot be written: ${this.#reports.fault}`,
    ];
    return {
      home,
      leading: this.#leads,
      pools: poolStatuses(this.#addresses),
      unkept,
      provisioning: this.#provisioning?.pending ?? 0,
      fault: faults.filter(Boolean).join('; '),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#provisioning?.close();
    await this.#reports.close();
    await this.#kept.close();
  }

  #lookAtEverything(): void {
    this.#poolsChanged = true;
    for (const { key } of this.#options.cluster.services()) this.#services.add(key);
  }

  /** Decides until there is nothing left to decide; done when it returns unless it is much. */
  async #work(): Promise<void> {
    if (this.#isWorking || !this.#isStarted || this.#isClosed) return;
    this.#isWorking = true;
    for (let change = this.#next(); change !== undefined; change = this.#next()) {
      const steps = this.#addresses.steps(change, Date.now());
      const slice = new Slice();
      let step = steps.next();
      while (!step.done) {
        if (slice.isOver) {
          this.#answer = undefined;
          await slice.breathe();
        }
        step = steps.next();
      }
      this.#carryOut(step.value, change.pools !== undefined);
    }
    this.#isWorking = false;
    this.#arm();
  }

  /** undefined where there is nothing to decide. */
  #next(): AddressesChange | undefined {
    const { cluster, home: homeNow, writers } = this.#options;
    const home = homeNow();
    // When the cluster becomes the home what it has counts, whoever leads: a file is of some day before.
    const isNew = home !== this.#kept.home;
    const isAlone = home === 'file' && (writers?.isBarred ?? true);
    const mayLead = home === 'file' || (home === 'cluster' && !isNew);
    const leads = isAlone || (mayLead && (writers?.isLeader ?? false));
    const hasTurned = this.#kept.turn(home, leads);
    // A file is seen by no other host. Who leads knows better than a status, which comes later, but for what was before.
    const byStatus = home === 'file' && !isAlone && (!leads || hasTurned);
    if (hasTurned) {
      this.#leads = leads;
      this.#hasTurned = true;
      for (const { key } of cluster.claims()) this.#claims.add(key);
    }
    const hasNews = this.#services.size > 0 || this.#claims.size > 0 || this.#overruling.length > 0;
    if (!this.#hasTurned && !hasNews && !this.#poolsChanged && !this.#isDue) return undefined;

    const { upserted, removed } = this.#kept.observed(this.#claims);
    const overruling = this.#overruling;
    for (const name of this.#claims) {
      // A Service that has claims asks, even where there is no pool any more.
      for (const claim of [this.#addresses.claim(name), cluster.claim(name)?.claim]) {
        if (claim === undefined) continue;
        this.#reports.touch(claim.address);
        if (claim.service !== '') this.#services.add(claim.service);
      }
    }
    const pools = this.#poolsChanged ? [...this.#settings.pools, ...cluster.pools()] : undefined;
    if (pools !== undefined) this.#hasPools = pools.length > 0;
    const services = [...this.#services];
    if (home !== 'file' && !leads && !isNew && this.#kept.unkept > 0) {
      for (const key of services)
        if (this.#request(key) === undefined) removed.push(...this.#kept.forgotten(key));
    }
    this.#services.clear();
    this.#claims.clear();
    this.#overruling = [];
    this.#poolsChanged = false;
    this.#isDue = false;
    return {
      ...(pools === undefined ? {} : { pools }),
      releaseAfter: this.#settings.releaseAfter,
      leading: leads,
      byStatus,
      claims: { upserted, removed, overruling },
      requests: this.#requests(services),
    };
  }

  *#requests(services: readonly string[]): Generator<readonly [string, AddressRequest | undefined]> {
    for (const key of services) {
      const service = this.#options.cluster.service(key);
      if (service === undefined) this.#seen.delete(key);
      else this.#seen.set(key, service);
      yield [key, this.#request(key)];
    }
  }

  #request(key: string): AddressRequest | undefined {
    const { cluster } = this.#options;
    const view: PoolsView = {
      isAny: this.#hasPools,
      isOfCluster: this.#kept.home === 'cluster',
      isOfFolder: (service) => cluster.isOfFolder(service),
      owns: (address) => this.#addresses.poolOf(address) !== undefined,
      hasAddress: (service) => this.#addresses.claimsOf(service).some(({ heldUntil }) => heldUntil === 0),
    };
    return askedAddress(cluster.service(key), this.#translating, view);
  }

  #carryOut({ changed, claimChanges }: AddressesOutcome, hasNewPools: boolean): void {
    this.#kept.change(claimChanges.map(({ claim }) => claim));
    for (const { claim } of claimChanges) this.#reports.touch(claim.address);
    const moved = new Set(changed);
    if (this.#hasTurned) {
      this.#hasTurned = false;
      this.#reports.lead(this.#leads && this.#kept.home === 'cluster');
      // Who leads next has another word on what went wrong with the program.
      for (const service of this.#provisioning?.services() ?? []) moved.add(service);
      this.#provision();
      this.#tellProblems();
      // Those that have what their status says, or had.
      for (const { key, addresses } of this.#addresses.assignments())
        if (addresses.length === 0) moved.add(key);
      this.#reports.tellAll(this.#options.cluster.pools());
    }
    if (hasNewPools) this.#reports.tellAll(this.#options.cluster.pools());
    this.#reports.tell();
    if (hasNewPools) this.#tellProblems();
    if (moved.size === 0) return;
    if (this.#answer === undefined) this.#options.onChanged(moved);
    else for (const key of moved) this.#answer.add(key);
  }

  /** Begins anew: who leads tells the program everything. */
  #provision(): void {
    this.#provisioning?.close();
    this.#provisioning = undefined;
    const { provisioner: program } = this.#settings;
    if (!this.#leads || program === '') return;
    const { log, metrics, onChanged } = this.#options;
    this.#provisioning = new Provisioning({
      program,
      log,
      metrics,
      claimsOn: (address) => this.#addresses.claimsOn(address),
      onProblem: (service) => {
        this.#tellProblems();
        onChanged([service]);
      },
    });
    for (const claim of this.#addresses.claims())
      if (this.#kept.has(claim.name)) this.#provisioning.kept(claim.name, claim);
  }

  #onKept(name: string, claim: AddressClaim | undefined): void {
    this.#provisioning?.kept(name, claim);
    if (claim !== undefined && claim.heldUntil === 0) this.#options.onKept(claim.service);
  }

  #tellProblems(): void {
    // Those of Services that are there are in their load balancers.
    const { cluster, onProblems } = this.#options;
    const ofGone = (this.#provisioning?.problems() ?? []).filter(
      ({ object }) => cluster.service(object.slice('Service '.length)) === undefined,
    );
    this.#problems = [...this.#addresses.poolProblems(), ...this.#fileProblems, ...ofGone];
    onProblems(this.#problems);
  }

  /** For the end of the next address that is kept for a Service that is gone. */
  #arm(): void {
    clearTimeout(this.#timer);
    const next = this.#addresses.nextExpiry();
    if (next === Number.POSITIVE_INFINITY || this.#isClosed) return;
    const wait = Math.min(Math.max(0, next - Date.now()), LONGEST_TIMER);
    this.#timer = setTimeout(() => {
      this.#isDue = true;
      void this.#work();
    }, wait).unref();
  }
}
