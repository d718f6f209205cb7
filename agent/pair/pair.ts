// This host as one of a pair: puts together what lowers it, the reports between the two agents, the operator's orders
// and the handover of connections. VRRP elects the master from the priorities of both hosts.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import type { DataplaneFacts } from '../dataplane/forwarder.ts';
import type { Meter } from '../dataplane/meter.ts';
import type { Log } from '../host/log.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { ReleaseScope } from '../state/release-mark.ts';
import type { StandingReason } from '../vips/announcer.ts';
import { Announced } from './announced.ts';
import { Handover, type HandoverOptions, type HandoverStatus } from './handover/handover.ts';
import { MaintenanceFile } from './orders/maintenance-file.ts';
import { type OrderOutcome, Orders } from './orders/orders.ts';
import { type PairSettings, tablesAddresses } from './pair-settings.ts';
import type { PairCredentials } from './peers/credentials.ts';
import type { Refusal } from './peers/heard-peer.ts';
import { PeerLink } from './peers/peer-link.ts';
import {
  type AuthReport,
  noArrivals,
  noAuthReport,
  noHandover,
  noVips,
  type PairReport,
} from './peers/report.ts';
import type { Priorities, Roles } from './roles.ts';
import { OwnStanding, type OwnStandingOptions } from './standing/own-standing.ts';
import { Parity } from './standing/parity.ts';
import { Promotion } from './standing/promotion.ts';
import { type PairParity, parityOf, whyPeerIsNotReady } from './standing/readiness.ts';
import type { Lowering } from './standing/standing.ts';
import { type MastersSeen, nextMasters, oneMaster } from './two-masters.ts';

export interface PairOptions {
  readonly host: PairedHost;
  /** The current ones: the addresses and the times may change, followed by renew(). */
  readonly settings: () => PairSettings;
  readonly dataplane: Pick<DataplaneFacts, 'served'> & Pick<Meter, 'status' | 'liveness'>;
  readonly vrrp: OwnStandingOptions['vrrp'] & {
    standing(reasons: readonly StandingReason[]): void;
    /** How keepalived authenticates advertisements, here and at the peer (undefined: it is not heard). */
    auth(): AuthReport | undefined;
    hearAuth(peer: AuthReport | undefined): void;
    /** The priorities of a host that these reasons lower. */
    priorities(reasons: readonly StandingReason[]): Priorities;
    /** Milliseconds between two advertisements. */
    advertInterval(): number;
    /** VRRP cannot have all of its addresses. */
    isRefused(loadBalancer: LoadBalancer): boolean;
  };
  /** For planned failovers that keep connections; undefined if this host has no VRRP. */
  readonly handover: Pick<HandoverOptions, 'kernel' | 'vipsOf' | 'forwarded'> | undefined;
  readonly hooks: PairHooks;
  readonly metrics: { pairRefused(why: Refusal): void } & HandoverOptions['metrics'];
  readonly log: Log;
}

/** What this host is, and what it has to serve. */
export interface PairedHost {
  readonly version: string;
  /** What an operator has released. */
  readonly released: () => ReleaseScope;
  /** The desired state by key. */
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly objects: OwnStandingOptions['objects'];
}

export interface PairHooks {
  /** The addresses of these load balancers may be published now. */
  readonly onAnnounced: (keys: readonly string[]) => void;
  /** As of PeerLink: the HAProxies of both hosts can share their tables. */
  readonly onProved: (credentials: PairCredentials) => Promise<void>;
}

export interface PairStatus {
  readonly roles: Roles;
  readonly lowered: readonly Lowering[];
  readonly maintenance: boolean;
  /** How many load balancers HAProxy does not serve as desired yet. */
  readonly pending: number;
  readonly parity: PairParity;
  /** Instances that have two masters. */
  readonly twoMasters: readonly string[];
  readonly peerAddress: string;
  /** The last report of the peer; undefined if there is no recent one. */
  readonly peer: PairReport | undefined;
  /** Why the peer could not take over now, '' if it could. */
  readonly peerNotReady: string;
  /** Connections over a planned failover; undefined if this host has no VRRP. */
  readonly handover: HandoverStatus | undefined;
  /** The end of the credentials, milliseconds since the epoch; 0 if they cannot be used. */
  readonly credentialsExpire: number;
  /** What is wrong with the pair, '' for nothing. */
  readonly fault: string;
}

export class Pair {
  readonly #options: PairOptions;
  readonly #instance = randomBytes(8).toString('hex');
  readonly #parity: Parity;
  readonly #orders: Orders;
  readonly #link: PeerLink;
  readonly #handover: Handover | undefined;
  readonly #standing: OwnStanding;
  readonly #promotion: Promotion;
  readonly #announced: Announced;
  #masters: MastersSeen = oneMaster;
  #hadPeer = false;
  #onReleased: () => void = () => undefined;
  #closed = false;

  constructor(options: PairOptions) {
    const { settings, host, dataplane, vrrp, metrics, log } = options;
    const { desired, objects } = host;
    const { pairPort, pairCredentials, pairDrainTimeout: drainTimeout, stateDir } = settings();
    const hosts = { roles: () => vrrp.roles(), peer: () => this.#peer, log };
    this.#options = options;
    this.#parity = new Parity({ desired, served: (key) => dataplane.served(key) });
    this.#link = new PeerLink({
      addresses: () => ({ own: settings().pairAddress, peers: [settings().pairPeer] }),
      port: pairPort,
      credentials: pairCredentials,
      report: () => this.#report(),
      tables: () => JSON.stringify(tablesAddresses(settings()) ?? ''),
      hooks: {
        onPeer: () => {
          this.#onReleased();
          vrrp.hearAuth(this.#peer?.vrrpAuth);
          this.#judge();
          this.#announced.look();
          this.#handover?.peerChanged();
          // After the input that has arrived by now is read, also that of keepalived.
          setImmediate(() => this.#judgeMasters(true));
        },
        onProved: options.hooks.onProved,
        onRefused: (why) => metrics.pairRefused(why),
      },
      log,
    });
    this.#handover =
      options.handover &&
      new Handover({
        ...options.handover,
        ...hosts,
        send: () => this.#link.send(),
        drainTimeout,
        metrics,
      });
    this.#standing = new OwnStanding({
      ...{ settings, objects, dataplane, vrrp, log },
      compared: { parity: this.#parity, orders: () => this.#orders, peer: () => this.#peer },
      hooks: {
        onChecked: () => {
          this.#judge();
          void this.#orders.restoreLock();
        },
        onChanged: (reasons) => {
          this.#promotion.promote(reasons);
          this.#link.send();
        },
      },
    });
    this.#promotion = new Promotion({
      ...hosts,
      priorities: (reasons) => vrrp.priorities(reasons),
      setStanding: (reasons) => {
        vrrp.standing(reasons);
        this.#link.send();
      },
      prepareToTake: async () => this.#handover?.request(),
      prepareToGive: async () => this.#handover?.give(),
    });
    this.#announced = new Announced({
      desired,
      served: (key) => dataplane.served(key),
      vrrp,
      peer: hosts.peer,
      isMoving: () => this.#handover?.isMoving === true || (this.#peer?.handover.asks ?? '') !== '',
      isServedAlike: (key) => this.#parity.isServedAlike(key, this.#peer),
      hooks: { onReport: () => this.#link.send(), onAnnounced: options.hooks.onAnnounced },
    });
    this.#orders = new Orders({
      file: new MaintenanceFile(join(stateDir, 'maintenance')),
      hosts: {
        roles: hosts.roles,
        peer: hosts.peer,
        whyNotReady: () => whyPeerIsNotReady(this.#report(), this.#peer),
        takes: () => this.#promotion.takes,
        advertInterval: () => vrrp.advertInterval(),
      },
      hooks: {
        prepare: async () => this.#handover?.prepare(),
        done: () => this.#handover?.done(),
        onChanged: () => this.#judge(),
      },
      clock: systemClock,
      log,
    });
  }

  /** Restores the operator's lock and connects to the peer. What cannot be done is a fault, not an error. */
  async start(): Promise<void> {
    await this.#orders.start();
    this.#judge();
    await this.#link.renew();
    void this.#handover?.start();
    this.#standing.start();
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  /** The host that has its VIPs serves it, as far as it can be known, or its addresses are published already. */
  mayPublish(key: string, isPublished: boolean): boolean {
    return this.#announced.mayPublish(key, isPublished);
  }

  changed(given: Iterable<string>): void {
    const keys = [...given];
    this.#announced.changed(keys);
    this.#parity.mark(keys);
    void this.#parity.settle().then(() => {
      this.#judge();
      this.#link.send();
    });
  }

  /** The VRRP state of this host has changed. */
  roleChanged(): void {
    this.#judge();
    this.#announced.look();
    this.#link.send();
  }

  /** The authentication of advertisements has changed here. */
  authChanged(): void {
    this.#link.send();
  }

  /** The order to release has changed here. */
  releasedChanged(): void {
    this.#link.send();
  }

  /** What the peer has released; undefined if it is not heard. */
  releasedByOthers(): readonly { readonly name: string; readonly scope: ReleaseScope | undefined }[] {
    return [{ name: this.#options.settings().pairPeer, scope: this.#peer?.released }];
  }

  /** Calls back at each report of the peer. */
  onReleased(callback: () => void): void {
    this.#onReleased = callback;
  }

  /** Reads the credentials and the settings again. */
  renew(): Promise<void> {
    return this.#link.renew();
  }

  /** Called before VRRP gets other priorities: prepares both hosts if VIPs move. Never rejects. */
  beforePriorities(next: (reasons: readonly StandingReason[]) => Priorities): Promise<void> {
    return this.#promotion.beforePriorities(next);
  }

  /** Hands the traffic over to the peer. */
  failover(force: boolean): Promise<OrderOutcome> {
    return this.#orders.failover(force);
  }

  /** Locks this host, or unlocks it. Errors: FILE_WRITE. */
  maintenance(isLocked: boolean): Promise<OrderOutcome> {
    return isLocked ? this.#orders.lock() : this.#orders.unlock();
  }

  status(): PairStatus {
    const own = this.#report();
    const peer = this.#peer;
    return {
      roles: own.roles,
      lowered: this.#standing.lowered,
      maintenance: this.#orders.isLocked,
      pending: own.pending,
      parity: parityOf(own, peer),
      twoMasters: this.#masters.names,
      peerAddress: this.#options.settings().pairPeer,
      peer,
      peerNotReady: whyPeerIsNotReady(own, peer),
      handover: this.#handover?.status,
      credentialsExpire: this.#link.expires,
      fault: this.#fault,
    };
  }

  problems(): readonly Problem[] {
    const { pairAddress, pairPeer } = this.#options.settings();
    const hosts = `${pairAddress} and ${pairPeer}`;
    return this.#masters.names.map((name) => ({
      object: `VRRP instance ${name}`,
      reason: 'TwoMasters',
      message: `Both hosts of the pair, ${hosts}, are master of ${name}: check whether VRRP gets from one to the other`,
    }));
  }

  close(): void {
    this.#closed = true;
    this.#announced.close();
    this.#standing.close();
    this.#orders.close();
    this.#promotion.close();
    this.#handover?.close();
    this.#link.close();
  }

  /** Ignores a report of this host's own: the peer's address may be its own. */
  get #peer(): PairReport | undefined {
    const { peer } = this.#link;
    return peer?.instance === this.#instance ? undefined : peer;
  }

  get #fault(): string {
    if (this.#masters.names.length > 0)
      return `Both hosts of the pair are master of ${this.#masters.names.join(', ')}`;
    if (this.#link.peer?.instance === this.#instance) return 'This host is set to be its own peer';
    return this.#link.fault;
  }

  #report(): PairReport {
    const { host, dataplane, vrrp } = this.#options;
    const { version, desired, objects } = host;
    const { model, running, pending } = this.#parity;
    return {
      version,
      instance: this.#instance,
      roles: vrrp.roles(),
      priorities: this.#promotion.priorities,
      lowered: this.#standing.lowered.map(({ reason }) => reason),
      synced: objects() !== 'unread',
      loadBalancers: desired.size,
      pending,
      model,
      running: dataplane.status().serving ? running : '',
      handover: this.#handover?.report ?? noHandover,
      announced: this.#announced.named,
      unannounced: this.#announced.open,
      vips: noVips,
      arrivals: noArrivals,
      hosts: '',
      announcesAll: false,
      isBlind: false,
      released: this.#options.host.released(),
      vrrpAuth: vrrp.auth() ?? noAuthReport,
    };
  }

  /** Called after each change of this host or the peer's report. */
  #judge(): void {
    if (this.#closed) return;
    const { settings, log } = this.#options;
    this.#standing.judge();
    this.#promotion.review();
    this.#judgeMasters(false);

    const hasPeer = this.#peer !== undefined;
    if (hasPeer && !this.#hadPeer) log.info('The peer is heard', { peer: settings().pairPeer });
    if (!hasPeer && this.#hadPeer) log.warn('The peer is not heard any more', { peer: settings().pairPeer });
    this.#hadPeer = hasPeer;
  }

  #judgeMasters(isFresh: boolean): void {
    if (this.#closed) return;
    const { vrrp, log } = this.#options;
    const at = { now: performance.now(), isFresh };
    const masters = nextMasters(this.#masters, vrrp.roles(), this.#peer?.roles, at);
    const [were, are] = [this.#masters.names.join(), masters.names.join()];
    this.#masters = masters;
    if (are !== were && are !== '') for (const { message } of this.problems()) log.error(message);
    if (are !== were && are === '') log.info('The pair has one master again', { instances: were });
  }
}
