// An operator's orders: hand over once, or lock this host until it is unlocked. Each order may be repeated, and returns
// when the traffic has moved, or with the reason why it has not.

import { type Clock, passed } from '../../base/clock.ts';
import type { Log } from '../../host/log.ts';
import { contested, isActive, type Roles } from '../roles.ts';
import type { MaintenanceFile } from './maintenance-file.ts';

export interface OrdersOptions {
  readonly file: MaintenanceFile;
  readonly hosts: OrderedHosts;
  readonly hooks: OrdersHooks;
  readonly clock: Clock;
  readonly log: Log;
}

/** What the two hosts are, now. */
export interface OrderedHosts {
  readonly roles: () => Roles;
  /** undefined without a recent report. */
  readonly peer: () => PeerState | undefined;
  /** Why the peer could not take over now, '' if it could. */
  readonly whyNotReady: () => string;
  /** VIPs of the peer are about to come to this host. */
  readonly takes: () => boolean;
  /** Milliseconds between two VRRP advertisements. */
  readonly advertInterval: () => number;
}

export interface OrdersHooks {
  /** Before this host gives way. Must not reject. */
  readonly prepare: () => Promise<void>;
  /** This host has given way, or has not. */
  readonly done: () => void;
  /** An order has changed what lowers this host. */
  readonly onChanged: () => void;
}

/** What an order needs of the peer's report. */
export interface PeerState {
  readonly roles: Roles;
  /** What lowers the peer. */
  readonly lowered: readonly string[];
}

export interface OrderOutcome {
  /** The order is carried out. */
  readonly ok: boolean;
  /** Which host has the traffic now. */
  readonly active: 'this host' | 'peer' | 'both' | 'other hosts' | 'unknown';
  /** Until the traffic had moved, milliseconds; 0 if nothing moved. */
  readonly tookMs: number;
  readonly message: string;
}

/** For the traffic to move, besides the time that VRRP needs. */
const MOVE_TIMEOUT_MS = 5_000;
/** VRRP moves a VIP within so many advertisements. */
const MOVE_ADVERTISEMENTS = 4;
/** For both hosts to prepare for VIPs that come to this host. */
const PREPARE_TIMEOUT_MS = 10_000;
/** A peer may be behind for so long: it always is for a moment after a change. */
const SETTLE_TIMEOUT_MS = 1_000;
const POLL_INTERVAL_MS = 10;
/** The highest value of the setting `vrrp`. */
const MAX_ADVERT_INTERVAL_MS = 10_000;
/** No order takes longer: a client need not wait any more. */
export const ORDER_TIMEOUT_MS =
  5_000 +
  2 * SETTLE_TIMEOUT_MS +
  PREPARE_TIMEOUT_MS +
  MOVE_TIMEOUT_MS +
  MOVE_ADVERTISEMENTS * MAX_ADVERT_INTERVAL_MS;

export class Orders {
  readonly #options: OrdersOptions;
  /** False also while a lock is being prepared. */
  #isLocked = false;
  #handover: 'none' | 'moving' | 'moved' = 'none';
  #failingOver: Promise<OrderOutcome> | undefined;
  /** One of the orders for the failover under way does not require a peer that is ready. */
  #isForced = false;
  #closed = false;

  constructor(options: OrdersOptions) {
    this.#options = options;
  }

  /** Restores the lock of an agent before this one. */
  async start(): Promise<void> {
    const { file, log } = this.#options;
    this.#isLocked = await file.read();
    if (this.#isLocked) log.warn('This host is in maintenance: headgate maintenance off ends it');
  }

  get isLocked(): boolean {
    return this.#isLocked;
  }

  /**
   * This host hands over, or has handed over and the peer is still master and well. Until then a host with the higher
   * priority does not take the traffic back.
   */
  get handsOver(): boolean {
    if (this.#handover === 'moved' && this.#hasPeerLost) this.#handover = 'none';
    return this.#handover !== 'none';
  }

  /**
   * The peer no longer has what it was given. While its agent is silent or has just started, its keepalived may well
   * continue; if not, VRRP makes this host master whatever lowers it.
   */
  get #hasPeerLost(): boolean {
    const peer = this.#options.hosts.peer();
    if (peer !== undefined && isActive(peer.roles)) return peer.lowered.length > 0;
    const isKnown = peer !== undefined && !Object.values(peer.roles).includes('unknown');
    return isKnown || isActive(this.#options.hosts.roles());
  }

  /** `force`: even if the peer is not ready; also ends the wait of a failover under way. */
  failover(force: boolean): Promise<OrderOutcome> {
    this.#isForced ||= force;
    this.#failingOver ??= this.#failover().finally(() => {
      this.#failingOver = undefined;
      this.#isForced = false;
      this.#options.hooks.onChanged();
    });
    return this.#failingOver;
  }

  /** Errors: FILE_WRITE; then nothing has changed. */
  async lock(): Promise<OrderOutcome> {
    const { file, log, hosts, hooks } = this.#options;
    const { roles, peer, whyNotReady } = hosts;
    const { prepare, done, onChanged } = hooks;
    const wasActive = isActive(roles());
    const whyNot = whyNotReady();
    await file.set(true);
    // A peer that is behind takes over all the same.
    if (wasActive && peer() !== undefined) await prepare();
    if (file.isLocked && !this.#isLocked) log.info('This host is locked');
    this.#isLocked = file.isLocked;
    onChanged();
    const tookMs = this.#isLocked ? await this.#untilAway() : undefined;
    done();
    if (!file.isLocked) return this.#outcome(false, 0, 'This host has been unlocked in the meantime');
    if (tookMs !== undefined)
      return this.#outcome(true, wasActive ? tookMs : 0, 'This host is locked and not active');
    const why = whyNot || 'the peer has not taken over';
    return this.#outcome(false, 0, `This host is locked, but still active: ${why}`);
  }

  /** Errors: FILE_WRITE; then nothing has changed. */
  async unlock(): Promise<OrderOutcome> {
    const { file, log, hooks } = this.#options;
    await file.set(false);
    if (this.#isLocked) log.info('This host is unlocked');
    this.#isLocked = false;
    hooks.onChanged();
    const tookMs = await this.#untilBack();
    if (file.isLocked) return this.#outcome(false, 0, 'This host has been locked in the meantime');
    if (tookMs === undefined)
      return this.#outcome(true, 0, 'This host is not locked, but its VIPs have not come back yet');
    return this.#outcome(true, tookMs, 'This host is not locked');
  }

  /** Restores a lock that another process has removed from disk. Called at intervals; never rejects. */
  async restoreLock(): Promise<void> {
    const { file, log } = this.#options;
    const hasRestored = await file.restore().catch(() => false);
    if (hasRestored) log.warn('The lock of this host was removed from disk: written again');
  }

  close(): void {
    this.#closed = true;
  }

  async #failover(): Promise<OrderOutcome> {
    const { hosts, hooks, log } = this.#options;
    const { roles, whyNotReady } = hosts;
    const { prepare, done, onChanged } = hooks;
    if (Object.values(roles()).every((role) => role === 'unknown'))
      return this.#outcome(false, 0, 'It is not known which host is active: VRRP does not run here');
    if (!isActive(roles()))
      return this.#outcome(true, 0, 'This host is not active: it has nothing to hand over');
    // During constant change the two hosts are equal only between two changes.
    await this.#until(() => this.#isForced || whyNotReady() === '', SETTLE_TIMEOUT_MS);
    const [force, whyNot] = [this.#isForced, whyNotReady()];
    if (whyNot !== '' && !force)
      return this.#outcome(false, 0, `Refused: ${whyNot}; --force hands over all the same`);
    log.info('This host hands over to the peer', { force, whyNotReady: whyNot });
    await prepare();
    this.#handover = 'moving';
    onChanged();
    const tookMs = await this.#untilAway();
    done();
    if (tookMs !== undefined) {
      this.#handover = 'moved';
      return this.#outcome(true, tookMs, 'The peer has taken over');
    }
    this.#handover = 'none';
    const seconds = Math.round(this.#moveTimeoutMs / 100) / 10;
    const failure = `The peer has not taken over within ${seconds} s: this host continues`;
    return this.#outcome(false, 0, [failure, whyNotReady()].filter(Boolean).join('; '));
  }

  get #moveTimeoutMs(): number {
    return MOVE_TIMEOUT_MS + MOVE_ADVERTISEMENTS * this.#options.hosts.advertInterval();
  }

  /** Until VIPs have come back, milliseconds; 0 if none are about to; undefined if they have not come in time. */
  async #untilBack(): Promise<number | undefined> {
    const { hosts, clock } = this.#options;
    const { takes, roles, peer } = hosts;
    if (!takes()) return 0;
    const began = clock.monotonic();
    if (!(await this.#until(() => !takes(), PREPARE_TIMEOUT_MS + this.#moveTimeoutMs))) return undefined;
    const tookMs = Math.round(clock.monotonic() - began);
    await this.#until(() => contested(roles(), peer()?.roles ?? {}).length === 0, SETTLE_TIMEOUT_MS);
    return tookMs;
  }

  /** Until no traffic comes here any more, milliseconds; undefined if it still does. */
  async #untilAway(): Promise<number | undefined> {
    const { hosts, clock } = this.#options;
    const { roles, peer } = hosts;
    const began = clock.monotonic();
    if (!(await this.#until(() => !isActive(roles()), this.#moveTimeoutMs))) return undefined;
    const tookMs = Math.round(clock.monotonic() - began);
    // The peer's report comes after the advertisement.
    await this.#until(() => {
      const theirs = peer();
      return theirs === undefined || isActive(theirs.roles);
    }, SETTLE_TIMEOUT_MS);
    return tookMs;
  }

  /** Whether the condition became true in time. */
  async #until(condition: () => boolean, timeoutMs: number): Promise<boolean> {
    const { clock } = this.#options;
    for (const end = clock.monotonic() + timeoutMs; !condition(); ) {
      if (this.#closed || clock.monotonic() > end) return false;
      await passed(clock, POLL_INTERVAL_MS);
    }
    return true;
  }

  #outcome(ok: boolean, tookMs: number, message: string): OrderOutcome {
    const { roles, peer } = this.#options.hosts;
    const [here, there] = [isActive(roles()), isActive(peer()?.roles ?? {})];
    const active = here && there ? 'both' : here ? 'this host' : there ? 'peer' : 'unknown';
    return { ok, active, tookMs, message };
  }
}
