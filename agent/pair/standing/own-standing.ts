// What lowers this host, from what is seen of it: looks at its HAProxy from time to time, judges that with all else that
// counts, and says so once where it has changed.

import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { Orders } from '../orders/orders.ts';
import type { PairReport } from '../peers/report.ts';
import { isActive, type Roles } from '../roles.ts';
import { knock, Watch } from './haproxy-watch.ts';
import { whyNotListening } from './listening.ts';
import type { Parity } from './parity.ts';
import { fullStanding, type Lowering, nextStanding, type Standing, type StandingReason } from './standing.ts';

/** Whether what is desired comes from the sources as they are now, or from what was kept of them. */
export type Objects = 'unread' | 'kept' | 'live';

export interface StandingSettings {
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  /** Milliseconds. */
  readonly pairLowerAfter: number;
  readonly pairRaiseAfter: number;
}

export interface OwnStandingOptions {
  /** As they are now. */
  readonly settings: () => StandingSettings;
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
    /** What it serves of a load balancer; `pending` where something is still to be done. */
    served(key: string): LoadBalancer | 'pending' | undefined;
    /** 0 where there is none. */
    workerPid(): number;
  };
  readonly vrrp: {
    roles(): Roles;
    /** Whether an address is on this host. */
    holds(address: string): boolean;
  };
  readonly parity: Pick<Parity, 'model' | 'isSettled' | 'pending'>;
  readonly orders: () => Pick<Orders, 'isLocked' | 'handsOver'>;
  /** undefined while it is not heard. */
  readonly peer: () => PairReport | undefined;
  /** HAProxy has been looked at. */
  readonly onLook: () => void;
  /** Something else lowers this host than before, or nothing any more. */
  readonly onChanged: (reasons: readonly StandingReason[]) => void;
  readonly log: Log;
}

/** Milliseconds between two looks at HAProxy while it is well, and while it is not. */
const LOOK = 500;
const LOOK_AGAIN = 100;
/** Of so many looks one is for listeners that cannot be connected to: what the kernel lists of them costs more to read. */
const LOOKS_TO_LISTEN = 4;

/** Milliseconds that HAProxy may be silent while it reloads: meanwhile the worker before goes on serving. */
const RELOAD_PATIENCE = 5_000;

const UNREAD = 'The objects have not been read yet';

export class OwnStanding {
  readonly #options: OwnStandingOptions;
  readonly #watch: Watch;
  /** Whoever asks before anything has been looked at hears no more than is known. */
  #standing: Standing = { ...fullStanding, lowered: [{ reason: 'catching-up', message: UNREAD }] };
  #seen = { haproxy: '', listeners: '' };
  #looks = 0;
  /** Up to when HAProxy counts as reloading, by performance.now(): a look or two after a reload may still be of it. */
  #reloadsUntil = 0;
  #isCatchingUp = true;
  /** What has been said last; undefined: nothing. */
  #told: readonly StandingReason[] | undefined;
  #look: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: OwnStandingOptions) {
    const { settings, haproxy, wanted } = options;
    this.#options = options;
    this.#watch = new Watch({
      ask: () => haproxy.ask(settings().pairLowerAfter),
      serves: (listener) => haproxy.serves(listener),
      served: (key) => haproxy.served(key),
      wanted,
      knock: (place) => {
        const { netns, pairLowerAfter } = settings();
        if (this.#canConnect) return knock(place, pairLowerAfter);
        return whyNotListening(netns === '' ? process.pid : haproxy.workerPid(), place);
      },
    });
  }

  /** Heaviest first. */
  get lowered(): readonly Lowering[] {
    return this.#standing.lowered;
  }

  /** Begins to look. */
  start(): void {
    void this.#lookAgain();
  }

  /** From what is known now; to be called whenever something of it may have changed. */
  judge(now = performance.now()): void {
    const { haproxy, orders, settings } = this.#options;
    const catchingUp = this.#whyCatchingUp();
    if (catchingUp === '') this.#isCatchingUp = false;
    const { isLocked: maintenance, handsOver: failover } = orders();
    const signs = { ...this.#seen, maintenance, failover, catchingUp };
    const { pairLowerAfter, pairRaiseAfter: raiseAfter } = settings();
    if (haproxy.isReloading()) this.#reloadsUntil = now + pairLowerAfter;
    const lowerAfter = now < this.#reloadsUntil ? Math.max(pairLowerAfter, RELOAD_PATIENCE) : pairLowerAfter;
    this.#standing = nextStanding(this.#standing, signs, now, { lowerAfter, raiseAfter });
    this.#tell(this.#standing.lowered);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#look);
  }

  /** The agent is not where the VIPs of another network namespace are, and connections to a VIP of the peer are its. */
  get #canConnect(): boolean {
    const { settings, vrrp } = this.#options;
    return settings().netns === '' && isActive(vrrp.roles());
  }

  async #lookAgain(): Promise<void> {
    const { vrrp, onLook } = this.#options;
    const isConnecting = this.#canConnect;
    const isTurn = isConnecting || this.#looks++ % LOOKS_TO_LISTEN === 0 || this.#seen.listeners !== '';
    // What the kernel lists has nothing to do with who holds a VIP.
    const isSeen = isConnecting ? (address: string) => vrrp.holds(address) : () => true;
    const began = performance.now();
    this.#seen = await this.#watch.look(isTurn ? isSeen : undefined);
    if (this.#closed) return;
    // What did not answer was silent from the moment that it was asked.
    const isWell = this.#seen.haproxy === '' && this.#seen.listeners === '';
    if (!isWell) this.judge(began);
    onLook();
    this.#look = setTimeout(() => void this.#lookAgain(), isWell ? LOOK : LOOK_AGAIN);
  }

  /**
   * Before it is known who is active nothing is said of catching up: a host that is active has no need to, and must not
   * lose its place because its agent starts anew.
   */
  #tell(after: readonly Lowering[]): void {
    const { vrrp, onChanged, log } = this.#options;
    const isUnknown = Object.values(vrrp.roles()).includes('unknown');
    if (this.#told === undefined && isUnknown && after.some(({ reason }) => reason === 'catching-up')) return;
    const before = this.#told ?? [];
    const reasons = after.map(({ reason }) => reason);
    for (const { reason, message } of after)
      if (!before.includes(reason)) log.warn('This host is lowered in the pair', { reason, why: message });
    for (const reason of before)
      if (!reasons.includes(reason)) log.info('This host is no longer lowered in the pair', { reason });
    const isNews = this.#told === undefined || reasons.join() !== before.join();
    this.#told = reasons;
    if (isNews) onChanged(reasons);
  }

  /**
   * Only since the agent's start, and not of a host that is active: from then on it is as good as its peer, give or
   * take a moment.
   */
  #whyCatchingUp(): string {
    if (!this.#isCatchingUp) return '';
    const { objects, haproxy, vrrp, parity, peer } = this.#options;
    if (isActive(vrrp.roles())) return '';
    const read = objects();
    if (read === 'unread') return UNREAD;
    if (!haproxy.isServing()) return 'HAProxy does not serve yet';
    if (!parity.isSettled || parity.pending > 0) return 'HAProxy does not serve everything as it should yet';
    // What was kept may be old: a peer that is there may know better.
    const theirs = peer()?.model;
    if (read === 'kept' && theirs !== undefined && theirs !== parity.model)
      return 'The objects are those that were kept, and the peer has others';
    return '';
  }
}
