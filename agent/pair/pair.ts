// This host as one of a pair: how it stands, what it tells its peer and hears from it, what an operator orders.
// Puts the parts together. Who is master is for VRRP to decide, from how the two hosts stand.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Log } from '../log.ts';
import type { LoadBalancer, Problem } from '../model.ts';
import type { PairCredentials } from './credentials.ts';
import { Handover, type HandoverOptions, type HandoverStatus } from './handover/handover.ts';
import { noHandover } from './handover/handover-report.ts';
import { whyNotListening } from './listening.ts';
import { MaintenanceFile } from './maintenance-file.ts';
import { type OrderOutcome, Orders } from './orders.ts';
import { Parity } from './parity.ts';
import type { Refusal } from './peer-ear.ts';
import { PeerLink } from './peer-link.ts';
import { type PairParity, parityOf, whyPeerIsNotReady } from './readiness.ts';
import type { PairReport } from './report.ts';
import { Rise } from './rise.ts';
import { isActive, type Priorities, type Roles } from './roles.ts';
import { fullStanding, type Lowering, nextStanding, type Standing, type StandingReason } from './standing.ts';
import { type MastersSeen, nextMasters, oneMaster } from './two-masters.ts';
import { knock, Watch } from './watch.ts';

export interface PairSettings {
  readonly stateDir: string;
  /** This host's address and the peer's, by which the two agents talk. */
  readonly pairAddress: string;
  readonly pairPeer: string;
  readonly pairPort: number;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  /** The file. */
  readonly pairCredentials: string;
  /** Milliseconds. */
  readonly pairLowerAfter: number;
  readonly pairRaiseAfter: number;
  readonly pairDrainTimeout: number;
}

/** Whether what is desired comes from the sources as they are now, or from what was kept of them. */
export type Objects = 'unread' | 'kept' | 'live';

export interface PairOptions {
  /** As they are now: what may change are the addresses and the times; renew() says that it has. */
  readonly settings: () => PairSettings;
  readonly version: string;
  /** The desired state by key. */
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  readonly objects: () => Objects;
  readonly haproxy: {
    isServing(): boolean;
    /** One worker is being replaced by another, on our order. */
    isReloading(): boolean;
    /** Fails where HAProxy does not answer in time. */
    ask(timeoutMs: number): Promise<unknown>;
    serves(listener: string): boolean;
    /** 0 where there is none. */
    workerPid(): number;
    /** What it serves of a load balancer; `pending` where something is still to be done. */
    served(key: string): LoadBalancer | 'pending' | undefined;
  };
  readonly vrrp: {
    roles(): Roles;
    /** Whether an address is on this host. */
    holds(address: string): boolean;
    standing(reasons: readonly StandingReason[]): void;
    /** With what lowers a host. */
    priorities(reasons: readonly StandingReason[]): Priorities;
    /** Milliseconds between two advertisements. */
    advertInterval(): number;
  };
  /** What keeps connections over a planned failover; undefined where this host has no VRRP. */
  readonly handover: Pick<HandoverOptions, 'kernel' | 'vipsOf'> | undefined;
  /** As of PeerLink: the HAProxies of the two hosts can share their tables. */
  readonly onProved: (credentials: PairCredentials) => Promise<void>;
  readonly metrics: { pairRefused(why: Refusal): void } & HandoverOptions['metrics'];
  readonly log: Log;
}

export interface PairStatus {
  readonly roles: Roles;
  readonly lowered: readonly Lowering[];
  readonly maintenance: boolean;
  /** How many load balancers HAProxy does not serve as it should yet. */
  readonly pending: number;
  readonly parity: PairParity;
  /** Instances that have two masters. */
  readonly twoMasters: readonly string[];
  readonly peerAddress: string;
  /** What the peer says of itself; undefined while it is not heard. */
  readonly peer: PairReport | undefined;
  /** Why the peer could not take over now, '' where it could. */
  readonly peerNotReady: string;
  /** Connections that outlive a planned failover; undefined where this host has no VRRP. */
  readonly handover: HandoverStatus | undefined;
  /** When the credentials end, milliseconds since the epoch; 0 where they cannot be used. */
  readonly credentialsExpire: number;
  /** What is wrong with the pair, '' where nothing is. */
  readonly fault: string;
}

/** Milliseconds between two looks at HAProxy while it is well, and while it is not. */
const LOOK = 500;
const LOOK_AGAIN = 100;
/** Of so many looks one is for the listeners in another network namespace. */
const LOOKS_TO_LISTEN = 4;

/** Milliseconds that HAProxy may be silent while it reloads: meanwhile the worker before goes on serving. */
const RELOAD_PATIENCE = 5_000;

const UNREAD = 'The objects have not been read yet';

export class Pair {
  readonly #options: PairOptions;
  readonly #instance = randomBytes(8).toString('hex');
  readonly #parity: Parity;
  readonly #watch: Watch;
  readonly #orders: Orders;
  readonly #link: PeerLink;
  readonly #handover: Handover | undefined;
  readonly #rise: Rise;
  /** Whoever asks before anything has been looked at hears no more than is known. */
  #standing: Standing = { ...fullStanding, lowered: [{ reason: 'catching-up', message: UNREAD }] };
  #masters: MastersSeen = oneMaster;
  #seen = { haproxy: '', listeners: '' };
  #looks = 0;
  /** Up to when HAProxy counts as reloading, by performance.now(): a look or two after a reload may still be of it. */
  #reloadsUntil = 0;
  #isCatchingUp = true;
  #wasHeard = false;
  /** What VRRP has been told last of how this host stands; undefined: nothing. */
  #told: readonly Lowering[] | undefined;
  #look: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: PairOptions) {
    const { settings, wanted, haproxy, vrrp, metrics, log } = options;
    const { pairPort, pairCredentials, pairDrainTimeout: drainTimeout, stateDir } = settings();
    this.#options = options;
    this.#parity = new Parity({ wanted, served: (key) => haproxy.served(key) });
    this.#watch = new Watch({
      ask: () => haproxy.ask(settings().pairLowerAfter),
      serves: (listener) => haproxy.serves(listener),
      wanted,
      // The agent is not where the VIPs of another network namespace are.
      knock: (place) =>
        settings().netns === ''
          ? knock(place, settings().pairLowerAfter)
          : whyNotListening(haproxy.workerPid(), place),
    });
    this.#link = new PeerLink({
      addresses: () => ({ own: settings().pairAddress, peer: settings().pairPeer }),
      port: pairPort,
      credentials: pairCredentials,
      report: () => this.#report(),
      onHeard: () => {
        this.#judge();
        this.#handover?.heard();
      },
      onProved: options.onProved,
      onRefused: (why) => metrics.pairRefused(why),
      log,
    });
    this.#handover =
      options.handover &&
      new Handover({
        ...options.handover,
        roles: () => vrrp.roles(),
        peer: () => this.#peer,
        tell: () => this.#link.tell(),
        drainTimeout,
        metrics,
        log,
      });
    this.#rise = new Rise({
      roles: () => vrrp.roles(),
      peer: () => this.#peer,
      priorities: (reasons) => vrrp.priorities(reasons),
      stand: (reasons) => {
        vrrp.standing(reasons);
        this.#link.tell();
      },
      prepare: async () => this.#handover?.wish(),
      log,
    });
    this.#orders = new Orders({
      file: new MaintenanceFile(join(stateDir, 'maintenance')),
      roles: () => vrrp.roles(),
      peerRoles: () => this.#peer?.roles,
      isPeerLowered: () => (this.#peer?.lowered.length ?? 0) > 0,
      whyNotReady: () => whyPeerIsNotReady(this.#report(), this.#peer),
      takes: () => this.#rise.takes,
      advertInterval: () => vrrp.advertInterval(),
      prepare: async () => this.#handover?.prepare(),
      done: () => this.#handover?.done(),
      onChanged: () => this.#judge(),
      log,
    });
  }

  /** Takes up what was ordered before, and begins to listen and to talk. What cannot be done is a fault, no error. */
  async start(): Promise<void> {
    await this.#orders.start();
    this.#judge();
    await this.#link.renew();
    void this.#handover?.start();
    void this.#lookAgain();
  }

  /** Something may have changed in these load balancers, or in what HAProxy serves of them. */
  touched(keys: Iterable<string>): void {
    this.#parity.mark(keys);
    void this.#parity.settle().then(() => {
      this.#judge();
      this.#link.tell();
    });
  }

  /** VRRP has changed its mind about this host. */
  roleChanged(): void {
    this.#judge();
    this.#link.tell();
  }

  /** Reads the credentials again, and takes up other settings. */
  renew(): Promise<void> {
    return this.#link.renew();
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
      message: `Both hosts of the pair, ${hosts}, are master of ${name}: look whether VRRP gets from one to the other`,
    }));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#look);
    this.#orders.close();
    this.#rise.close();
    this.#handover?.close();
    this.#link.close();
  }

  /** A host that hears itself hears no peer. */
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
    const { version, wanted, objects, haproxy, vrrp } = this.#options;
    const { model, running, pending } = this.#parity;
    return {
      version,
      instance: this.#instance,
      roles: vrrp.roles(),
      priorities: this.#rise.priorities,
      lowered: this.#standing.lowered.map(({ reason }) => reason),
      synced: objects() !== 'unread',
      loadBalancers: wanted.size,
      pending,
      model,
      running: haproxy.isServing() ? running : '',
      handover: this.#handover?.report ?? noHandover,
    };
  }

  async #lookAgain(): Promise<void> {
    const { vrrp, settings } = this.#options;
    // What the kernel has to list for it costs more than a connection.
    const isTurn = settings().netns === '' || this.#looks++ % LOOKS_TO_LISTEN === 0;
    const knocks = isActive(vrrp.roles()) && (isTurn || this.#seen.listeners !== '');
    const began = performance.now();
    this.#seen = await this.#watch.look(knocks ? (address) => vrrp.holds(address) : undefined);
    if (this.#closed) return;
    // What did not answer was silent from the moment that it was asked.
    const isWell = this.#seen.haproxy === '' && this.#seen.listeners === '';
    if (!isWell) this.#judge(began);
    this.#judge();
    this.#look = setTimeout(() => void this.#lookAgain(), isWell ? LOOK : LOOK_AGAIN);
  }

  /** Everything that follows from what is known now; called whenever something of it may have changed. */
  #judge(now = performance.now()): void {
    if (this.#closed) return;
    const { haproxy, vrrp, log } = this.#options;
    const settings = this.#options.settings();
    const catchingUp = this.#whyCatchingUp();
    if (catchingUp === '') this.#isCatchingUp = false;
    const { isLocked: maintenance, handsOver: failover } = this.#orders;
    const signs = { ...this.#seen, maintenance, failover, catchingUp };
    const { pairLowerAfter, pairRaiseAfter: raiseAfter } = settings;
    if (haproxy.isReloading()) this.#reloadsUntil = now + pairLowerAfter;
    const lowerAfter = now < this.#reloadsUntil ? Math.max(pairLowerAfter, RELOAD_PATIENCE) : pairLowerAfter;
    const patience = { lowerAfter, raiseAfter };
    this.#standing = nextStanding(this.#standing, signs, now, patience);
    this.#stand(this.#standing.lowered);
    this.#rise.look();

    const masters = nextMasters(this.#masters, vrrp.roles(), this.#peer?.roles, now);
    const [were, are] = [this.#masters.names.join(), masters.names.join()];
    this.#masters = masters;
    if (are !== were && are !== '') for (const { message } of this.problems()) log.error(message);
    if (are !== were && are === '') log.info('The pair has one master again', { instances: were });

    const isHeard = this.#peer !== undefined;
    if (isHeard && !this.#wasHeard) log.info('The peer is heard', { peer: settings.pairPeer });
    if (!isHeard && this.#wasHeard) log.warn('The peer is not heard any more', { peer: settings.pairPeer });
    this.#wasHeard = isHeard;
  }

  /**
   * Tells VRRP, the peer and the log what has changed in the standing. Before it is known who is active nothing is said
   * of catching up: a host that is active has no need to, and must not lose its place because its agent starts anew.
   */
  #stand(after: readonly Lowering[]): void {
    const { vrrp, log } = this.#options;
    const isUnknown = Object.values(vrrp.roles()).includes('unknown');
    if (this.#told === undefined && isUnknown && after.some(({ reason }) => reason === 'catching-up')) return;
    const [had, has] = [this.#told ?? [], after].map((all) => new Set(all.map(({ reason }) => reason)));
    for (const { reason, message } of after) {
      if (!had?.has(reason)) log.warn('This host is lowered in the pair', { reason, why: message });
    }
    for (const { reason } of this.#told ?? [])
      if (!has?.has(reason)) log.info('This host is no longer lowered in the pair', { reason });
    const reasons = after.map(({ reason }) => reason);
    const isNews = this.#told === undefined || reasons.join() !== [...(had ?? [])].join();
    this.#told = after;
    if (!isNews) return;
    this.#rise.stand(reasons);
    this.#link.tell();
  }

  /**
   * Only since the agent's start, and not of a host that is active: from then on it is as good as its peer, give or
   * take a moment.
   */
  #whyCatchingUp(): string {
    if (!this.#isCatchingUp) return '';
    const { objects, haproxy, vrrp } = this.#options;
    if (isActive(vrrp.roles())) return '';
    const read = objects();
    if (read === 'unread') return UNREAD;
    if (!haproxy.isServing()) return 'HAProxy does not serve yet';
    if (!this.#parity.isSettled || this.#parity.pending > 0)
      return 'HAProxy does not serve everything as it should yet';
    // What was kept may be old: a peer that is there may know better.
    const peer = this.#peer;
    if (read === 'kept' && peer !== undefined && peer.model !== this.#parity.model)
      return 'The objects are those that were kept, and the peer has others';
    return '';
  }
}
