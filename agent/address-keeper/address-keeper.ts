// Keeps the addresses of the pools: collects changes of pools, claims, Services, Gateways and the leader for the next decision
// (decision-loop.ts), and stores the claims (stored-claims.ts) before an address is published. Owns all of these parts.

import { join } from 'node:path';
import {
  type AddressClaim,
  Addresses,
  type AddressesChange,
  type AddressesOutcome,
  type AddressRequest,
} from '../addresses/addresses.ts';
import { publicAddressOf } from '../addresses/assignment.ts';
import { requesterOf, requestingOwners } from '../addresses/requesters.ts';
import type { DiskFile } from '../base/disk-file.ts';
import { familyOf } from '../base/ip.ts';
import { quote } from '../base/quote.ts';
import { sameValue } from '../base/same-value.ts';
import type { Log } from '../host/log.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import type { Cluster, Differences } from '../kubernetes/cluster.ts';
import type { ClaimWriterMetrics } from '../kubernetes/writers/claim-writer.ts';
import type { EventRecorder } from '../kubernetes/writers/events.ts';
import type { Dependency } from '../model/desired-state.ts';
import type { OwnerKey, Problem } from '../model/load-balancer.ts';
import { objectInWords, ownerOf } from '../model/names.ts';
import type { Settings } from '../settings/settings.ts';
import { type PoolAddresses, parseVip } from '../translate/service/service-vips.ts';
import type { TranslateSettings } from '../translate/translate-settings.ts';
import { AddressHolders } from './address-holders.ts';
import { Provisioning, type ProvisioningMetrics } from './address-provisioning.ts';
import { type AddressStatus, poolStatuses } from './address-status.ts';
import { askedAddress, poolsView } from './asked-address.ts';
import { DecisionLoop } from './decision-loop.ts';
import { objectsOf, publishedBy } from './owner-objects.ts';
import { PoolReports } from './pool-reports.ts';
import type { ProvisionRequest } from './provisioner.ts';
import { type ClaimHome, StoredClaims } from './stored-claims.ts';

export type { AddressStatus } from './address-status.ts';

export interface AddressKeeperOptions {
  readonly cluster: Cluster;
  readonly settings: AddressSettings;
  readonly translating: TranslateSettings;
  readonly store: ClaimStore;
  readonly hooks: AddressHooks;
  readonly log: Log;
  readonly metrics: AddressMetrics;
}

/** Where claims are stored, and who decides. */
export interface ClaimStore {
  readonly api: KubernetesApi | undefined;
  /** Read at each change: it is unknown before the API server has answered, and may change later. */
  readonly home: () => ClaimHome;
  /** The agent that writes to the cluster also decides on addresses; undefined without a cluster. */
  readonly writers: AddressWriters | undefined;
}

export interface AddressHooks {
  /** The addresses of these Services have changed. */
  readonly onChanged: (services: Iterable<string>) => void;
  /** The claim of this Service is stored: its address may be published. */
  readonly onKept: (service: string) => void;
  readonly onProblems: (problems: readonly Problem[]) => void;
}

export interface AddressWriters {
  readonly isLeader: boolean;
  /** The API server does not permit this agent to take the Lease. */
  readonly isBarred: boolean;
  onLeader(callback: () => void): void;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly services: {
    /** Resolves with true when the Service has the finalizer, so that it may get an address. */
    requestFinalizer(service: string, uid: string): Promise<boolean>;
  };
}

export type AddressSettings = Pick<Settings, 'pools' | 'releaseAfter' | 'provisioner' | 'stateDir'>;

export type AddressMetrics = ClaimWriterMetrics & ProvisioningMetrics;

/** Below the state directory. */
export const CLAIM_FILE = ['addresses', 'claims.json'] as const;
export class AddressKeeper {
  readonly #options: AddressKeeperOptions;
  readonly #holders: AddressHolders;
  readonly #addresses = new Addresses(
    (address) => this.#holders.of(address),
    () => this.#holders.nodes(),
    (owner) => this.#isReleased(owner),
  );
  readonly #kept: StoredClaims;
  readonly #reports: PoolReports;
  #settings: AddressSettings;
  #translating: TranslateSettings;
  readonly #provisioning: Provisioning;
  readonly #loop: DecisionLoop;
  /** The objects of each owner at its last decision. */
  readonly #lastObjects = new Map<OwnerKey, readonly unknown[]>();
  #problems: readonly Problem[] = [];
  #fileProblems: readonly Problem[] = [];
  /** Problems of the pools alone. */
  #poolProblems: readonly Problem[] = [];
  #nodePlaces = '';
  #leads = false;
  /** The leader or the home of claims has changed since the last decision. */
  #hasTurned = false;
  #hasPools = false;

  constructor(options: AddressKeeperOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#translating = options.translating;
    this.#holders = new AddressHolders(options.cluster);
    const { cluster, store, log, metrics } = options;
    const { api, writers } = store;
    const { onChanged } = options.hooks;
    const isLeader = (): boolean => writers?.isLeader ?? false;
    this.#loop = new DecisionLoop({
      addresses: this.#addresses,
      next: () => this.#next(),
      apply: (outcome, change) => this.#apply(outcome, change.pools !== undefined),
      onChanged,
    });
    this.#kept = new StoredClaims({
      addresses: this.#addresses,
      cluster,
      path: join(options.settings.stateDir, ...CLAIM_FILE),
      api,
      hooks: {
        isLeader,
        mayClaim: async (owner, uid) => this.#mayClaim(owner, uid),
        onOverruled: (claim) => {
          this.#loop.changes.overruling.push(claim);
          void this.#loop.run();
        },
        onKept: (name, claim) => this.#onKept(name, claim),
      },
      log,
      metrics,
    });
    this.#reports = new PoolReports({
      api,
      log,
      isLeader,
      addresses: this.#addresses,
      events: writers?.events,
    });
    this.#provisioning = new Provisioning({
      log,
      metrics,
      claimsOn: (address) => this.#addresses.claimsOn(address),
      isReleased: (owner) => this.#isReleased(owner),
      publicOf: (claim) => {
        const pool = this.#addresses.poolOf(claim.address);
        return { address: publicAddressOf(claim, pool), isAnswered: pool?.public?.kind === 'provisioner' };
      },
      onAnswer: (request, answer) => this.#answered(request, answer),
      onProblem: (service) => {
        this.#reportProblems();
        onChanged([service]);
      },
    });
    writers?.onLeader(() => this.take());
  }

  /** Called after all objects are in the cluster. Resolves when everything is decided. */
  async start(): Promise<void> {
    const { claims, problems } = await this.#kept.read();
    this.#fileProblems = problems;
    this.#addresses.update({ claims: { upserted: claims } }, Date.now());
    for (const { key } of this.#options.cluster.claims()) this.#loop.changes.claims.add(key);
    this.#reviewAll();
    await this.#loop.start();
  }

  /** Pools, claims and Nodes have changed; or the leader, or the home of claims. */
  take(
    {
      poolsChanged,
      claims,
      dependencies = NO_DIFFERENCES.dependencies,
    }: Pick<Differences, 'poolsChanged' | 'claims'> &
      Partial<Pick<Differences, 'dependencies'>> = NO_DIFFERENCES,
    haveNodesChanged = false,
  ): void {
    const nodes = haveNodesChanged ? this.#nodesInPools() : this.#nodePlaces;
    // The address of a Node that is gone is free now; that of a new one is not.
    if (poolsChanged || nodes !== this.#nodePlaces) this.#reviewAll();
    this.#nodePlaces = nodes;
    for (const name of claims) this.#loop.changes.claims.add(name);
    if (this.#addresses.selectsNamespaces) this.#reviewNamespaces(dependencies);
    void this.#loop.run();
  }

  /** Resolves when everything that has changed is decided. */
  decided(): Promise<void> {
    return this.#loop.run();
  }

  /** Others are released now, or are no longer. */
  releasedChanged(): void {
    this.#reviewAll();
    for (const { service } of this.#addresses.claims())
      if (service !== '') this.#loop.changes.services.add(service);
    void this.#loop.run();
  }

  /** All claims that this host knows, without reservations. */
  *claims(): Generator<AddressClaim> {
    for (const claim of this.#addresses.claims()) if (!claim.reserved) yield claim;
  }

  claimsOn(address: string): readonly AddressClaim[] {
    return this.#addresses.claimsOn(address);
  }

  /** The address that clients use; itself if they use this one. */
  publicOf(address: string): string {
    const named = this.#addresses.claimsOn(address).find(({ publicAddress }) => publicAddress !== '');
    return (
      publicAddressOf(named ?? { address, publicAddress: '' }, this.#addresses.poolOf(address)) || address
    );
  }

  /** All present problems with objects of the API. */
  cannotRead(problems: readonly Problem[]): void {
    this.#reports.cannotRead(problems);
  }

  /** Decides on these Services and gives those whose addresses have changed; during a large decision `onChanged` does later. */
  assign(services: Iterable<string>): ReadonlySet<string> {
    for (const key of services) {
      if (!isSame(this.#lastObjects.get(key), objectsOf(this.#options.cluster, key)))
        this.#loop.changes.services.add(key);
    }
    return this.#loop.changes.services.size === 0 ? new Set() : this.#loop.runNow();
  }

  /** The Service's addresses of the pools; undefined if it has the addresses that it names itself. */
  readonly ofPools = (key: string): PoolAddresses | undefined => {
    const assignment = this.#addresses.assignment(key);
    if (assignment === undefined) return undefined;
    const { addresses } = assignment;
    // A published address is served until the leader has decided.
    const published = publishedBy(this.#options.cluster, key);
    if (!this.#leads && addresses.length === 0 && published.length > 0)
      return {
        addresses: published.map((publicAddress) => ({
          address: this.#addresses.localOf(publicAddress),
          publicAddress,
          ports: [],
        })),
        problems: [],
      };
    const failed = this.#provisioning.problemsOf(key);
    return {
      addresses,
      problems: failed.length === 0 ? assignment.problems : [...assignment.problems, ...failed],
    };
  };

  /** The Service requests an address of the pools, and the decision on that is under way. */
  readonly isUndecided = (key: string): boolean =>
    this.#addresses.assignment(key) === undefined && this.#request(key) !== undefined;

  /** All claims of the Service are stored: its addresses may be published. */
  isKept(key: string): boolean {
    return this.#addresses
      .claimsOf(key)
      .every(({ heldUntil, name }) => heldUntil !== 0 || this.#kept.has(name));
  }

  configure(settings: AddressSettings, translating: TranslateSettings): void {
    const hasOtherProgram = settings.provisioner !== this.#settings.provisioner;
    this.#settings = settings;
    this.#translating = translating;
    if (hasOtherProgram) this.#restartProvisioning();
    this.#reviewAll();
    void this.#loop.run();
  }

  /** Problems of pools, of the claims file, and of addresses that could not be released. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  /** The claims that no cluster keeps. */
  get files(): readonly DiskFile[] {
    return this.#kept.file === undefined ? [] : [this.#kept.file];
  }

  status(): AddressStatus {
    const { home, unkept, fault } = this.#kept;
    const faults = [
      fault && `Claims cannot be stored: ${fault}`,
      this.#leads && this.#reports.fault && `The status of pools cannot be written: ${this.#reports.fault}`,
    ];
    return {
      home,
      leading: this.#leads,
      pools: poolStatuses(this.#addresses),
      unkept,
      provisioning: this.#provisioning.pending,
      fault: faults.filter(Boolean).join('; '),
    };
  }

  async close(): Promise<void> {
    this.#loop.close();
    this.#provisioning.close();
    await this.#reports.close();
    await this.#kept.close();
  }

  #isReleased(owner: OwnerKey): boolean {
    return this.#translating.isReleased?.(ownerOf(owner).namespace) === true;
  }

  /** The Nodes with an address of a pool, as a text to compare. */
  #nodesInPools(): string {
    const places = this.#options.cluster
      .nodes()
      .flatMap(({ name, internalIPs }) =>
        internalIPs.filter((ip) => this.#addresses.poolOf(ip) !== undefined).map((ip) => `${name} ${ip}`),
      );
    return places.join();
  }

  /** The labels of a namespace decide which pools are for it. */
  #reviewNamespaces(changed: ReadonlySet<Dependency>): void {
    const isThere = [...changed].some((each) => each.startsWith('namespace '));
    if (!isThere) return;
    for (const key of requestingOwners(this.#options.cluster))
      if (changed.has(`namespace ${ownerOf(key).namespace}`)) this.#loop.changes.services.add(key);
  }

  #reviewAll(): void {
    const { changes } = this.#loop;
    changes.havePoolsChanged = true;
    for (const key of requestingOwners(this.#options.cluster)) changes.services.add(key);
  }

  /** undefined if there is nothing to decide. */
  #next(): AddressesChange | undefined {
    const { cluster, store } = this.#options;
    const { writers } = store;
    const home = store.home();
    // When the cluster becomes the home, its claims overrule even the leader's, which come from an older file.
    const isNew = home !== this.#kept.home;
    const isAlone = home === 'file' && (writers?.isBarred ?? true);
    const mayLead = home === 'file' || (home === 'cluster' && !isNew);
    const leads = isAlone || (mayLead && (writers?.isLeader ?? false));
    const hasTurned = this.#kept.turn(home, leads);
    // Other hosts cannot see a claims file. The leader overrules statuses, which come later, except those before its lead.
    const byStatus = home === 'file' && !isAlone && (!leads || hasTurned);
    if (hasTurned) {
      this.#leads = leads;
      this.#hasTurned = true;
      for (const { key } of cluster.claims()) this.#loop.changes.claims.add(key);
    }
    if (!this.#hasTurned && !this.#loop.hasChanges) return undefined;

    this.#holders.forget();
    const { services, claims, overruling, answers, havePoolsChanged } = this.#loop.takeChanges();
    const { upserted, removed } = this.#kept.observed(claims);
    for (const name of claims) {
      // The Service of a claim is decided again, even without any pool.
      for (const claim of [this.#addresses.claim(name), cluster.claim(name)?.claim]) {
        if (claim === undefined) continue;
        this.#reports.touch(claim.address);
        if (claim.service !== '') services.add(claim.service);
      }
    }
    const pools = havePoolsChanged ? [...this.#settings.pools, ...cluster.pools()] : undefined;
    if (pools !== undefined) this.#hasPools = pools.length > 0;
    if (home !== 'file' && !leads && !isNew && this.#kept.unkept > 0) {
      for (const key of services)
        if (this.#request(key) === undefined) removed.push(...this.#kept.forget(key));
    }
    return {
      ...(pools === undefined ? {} : { pools }),
      releaseAfter: this.#settings.releaseAfter,
      leading: leads,
      byStatus,
      claims: { upserted, removed, overruling },
      answers,
      requests: this.#requests(services),
    };
  }

  *#requests(services: Iterable<string>): Generator<readonly [string, AddressRequest | undefined]> {
    for (const key of services) {
      const objects = objectsOf(this.#options.cluster, key);
      if (objects === undefined) this.#lastObjects.delete(key);
      else this.#lastObjects.set(key, objects);
      yield [key, this.#request(key)];
    }
  }

  /**
   * A claim comes first: with it the address of an owner that goes meanwhile is held and then released. Only a program that
   * works outside the cluster needs the finalizer before, which only Services have.
   */
  async #mayClaim(owner: OwnerKey, uid: string): Promise<boolean> {
    const { writers } = this.#options.store;
    if (writers === undefined || this.#settings.provisioner === '' || ownerOf(owner).kind !== 'Service')
      return writers?.isLeader ?? false;
    return writers.services.requestFinalizer(owner, uid);
  }

  #request(key: string): AddressRequest | undefined {
    const { cluster } = this.#options;
    const pools = poolsView(cluster, this.#addresses, {
      isAny: this.#hasPools,
      isOfCluster: this.#kept.home === 'cluster',
    });
    return askedAddress(requesterOf(cluster, key), this.#translating, pools);
  }

  #apply({ changed, claimChanges }: AddressesOutcome, hasNewPools: boolean): ReadonlySet<string> {
    this.#kept.change(claimChanges);
    for (const { claim } of claimChanges) this.#reports.touch(claim.address);
    if (hasNewPools) this.#nodePlaces = this.#nodesInPools();
    const moved = new Set(changed);
    const hasTurned = this.#hasTurned;
    this.#hasTurned = false;
    if (hasTurned) {
      this.#reports.lead(this.#leads && this.#kept.home === 'cluster');
      // The problems of the program end with the lead.
      for (const service of this.#provisioning.problems().keys()) moved.add(service);
      this.#restartProvisioning();
      // Their published addresses count or cease to count.
      for (const { key, addresses } of this.#addresses.assignments())
        if (addresses.length === 0) moved.add(key);
    }
    const haveProblemsChanged = !sameValue(this.#addresses.poolProblems(), this.#poolProblems);
    if (hasTurned || hasNewPools || haveProblemsChanged) {
      this.#reportProblems();
      this.#reports.writeAll(this.#options.cluster.pools());
    }
    // A pool may give other public addresses now, or ask for answers.
    if (hasNewPools) for (const claim of this.#storedClaims()) this.#provisioning.stored(claim.name, claim);
    this.#reports.write();
    return moved;
  }

  #restartProvisioning(): void {
    this.#provisioning.restart(this.#leads ? this.#settings.provisioner : '', this.#storedClaims());
  }

  #storedClaims(): readonly AddressClaim[] {
    return [...this.#addresses.claims()].filter(({ name }) => this.#kept.has(name));
  }

  /** Why the answer cannot be used; undefined if it can. */
  #answered({ address, service }: ProvisionRequest, answer: string | undefined): string | undefined {
    const parsed = answer === undefined ? undefined : parseVip(answer, 'pool');
    if (parsed === undefined)
      return 'answered no public address, as {"public": "203.0.113.9"}, which its pool requires';
    if (typeof parsed === 'string' || parsed.family !== familyOf(address))
      return `answered the public address ${quote(answer ?? '')}, which ${typeof parsed === 'string' ? parsed : `is not of the family of ${address}`}`;
    const other = this.#addresses.withPublic(parsed.address).find((each) => each.address !== address);
    if (other !== undefined || this.#addresses.poolOf(parsed.address) !== undefined)
      return `answered the public address ${parsed.address}, which ${other === undefined ? 'a pool' : objectInWords(other.service)} has`;
    const claim = this.#addresses
      .claimsOn(address)
      .find((each) => each.service === service && !each.reserved);
    if (claim !== undefined) this.#loop.changes.answers.set(claim.name, parsed.address);
    void this.#loop.run();
    return undefined;
  }

  #onKept(name: string, claim: AddressClaim | undefined): void {
    this.#provisioning.stored(name, claim);
    if (claim !== undefined && claim.heldUntil === 0) this.#options.hooks.onKept(claim.service);
  }

  #reportProblems(): void {
    const { cluster, hooks } = this.#options;
    // A load balancer has the problems of its owner.
    const ofGone = [...this.#provisioning.problems()].flatMap(([service, problems]) =>
      requesterOf(cluster, service) === undefined ? problems : [],
    );
    this.#poolProblems = this.#addresses.poolProblems();
    this.#problems = [...this.#poolProblems, ...this.#fileProblems, ...ofGone];
    hooks.onProblems(this.#problems);
  }
}

const NO_DIFFERENCES = {
  poolsChanged: false,
  claims: new Set<string>(),
  dependencies: new Set<Dependency>(),
} as const;

function isSame(before: readonly unknown[] | undefined, now: readonly unknown[] | undefined): boolean {
  return before?.length === now?.length && (now?.every((each, at) => each === before?.[at]) ?? true);
}
