// What an operator orders: hand over once, or stay out until told otherwise. Each is as good said twice as once, and
// returns when the traffic has moved, or says why it has not.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../host/log.ts';
import { contested, isActive, type Roles } from '../roles.ts';
import type { MaintenanceFile } from './maintenance-file.ts';

export interface OrdersOptions {
  readonly file: MaintenanceFile;
  readonly roles: () => Roles;
  /** Of the peer; undefined while it is not heard. */
  readonly peerRoles: () => Roles | undefined;
  /** Whether anything lowers the peer. */
  readonly isPeerLowered: () => boolean;
  /** Why the peer could not take over now, '' where it could. */
  readonly whyNotReady: () => string;
  /** Whether VIPs of the peer are about to come to this host. */
  readonly takes: () => boolean;
  /** Milliseconds between two advertisements of VRRP, which moves within four. */
  readonly advertInterval: () => number;
  /** Before this host gives way, and when it has, or has not. Neither rejects. */
  readonly prepare: () => Promise<void>;
  readonly done: () => void;
  /** An order has changed how this host stands. */
  readonly onChanged: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** What became of an order. */
export interface OrderOutcome {
  /** Whether it is as it was ordered. */
  readonly ok: boolean;
  /** Who has the traffic now. */
  readonly active: 'this host' | 'peer' | 'both' | 'unknown';
  /** Milliseconds that it took to move; 0 where nothing moved. */
  readonly tookMs: number;
  readonly message: string;
}

/** Milliseconds in which traffic moves, or does not, beside those that VRRP takes. */
const MOVE = 5_000;
const ADVERTS = 4;
/** Milliseconds in which both hosts are prepared for VIPs that come to this one. */
const PREPARE = 10_000;
/** Milliseconds for which a peer may be behind, as it always is for a moment after a change. */
const SETTLE = 1_000;
/** Milliseconds between two looks whether it has. */
const LOOK = 10;
/** Milliseconds, the longest that the setting vrrp takes. */
const LONGEST_ADVERT_INTERVAL = 10_000;
/** Milliseconds after which whoever has given an order need not wait any more: an order never takes so long. */
export const ORDER_PATIENCE = 5_000 + SETTLE + PREPARE + MOVE + ADVERTS * LONGEST_ADVERT_INTERVAL + SETTLE;

export class Orders {
  readonly #options: OrdersOptions;
  #isLocked = false;
  /** What the file says, which a lock that is being prepared for is not yet. */
  #isOrdered = false;
  #written: Promise<void> = Promise.resolve();
  #handover: 'none' | 'moving' | 'moved' = 'none';
  #underWay: Promise<OrderOutcome> | undefined;
  /** Whether anybody wants the failover under way, ready or not. */
  #isForced = false;
  #closed = false;

  constructor(options: OrdersOptions) {
    this.#options = options;
  }

  /** Takes up what was ordered before the agent started. */
  async start(): Promise<void> {
    this.#isLocked = await this.#options.file.isThere();
    this.#isOrdered = this.#isLocked;
    if (this.#isLocked)
      this.#options.log.warn('This host is in maintenance: headgate maintenance off ends it');
  }

  get isLocked(): boolean {
    return this.#isLocked;
  }

  /**
   * Whether this host hands over, or has. It stands back for as long as its peer is master and well, so that nothing
   * swings back where this host has the higher priority.
   */
  get handsOver(): boolean {
    if (this.#handover === 'moved' && this.#isOver) this.#handover = 'none';
    return this.#handover !== 'none';
  }

  /**
   * Whether the peer has lost what it was given. Its keepalived may well go on where its agent is silent, or has just
   * started and does not know yet; if not, VRRP makes this host master, however it stands.
   */
  get #isOver(): boolean {
    const { roles, peerRoles, isPeerLowered } = this.#options;
    const peer = peerRoles();
    if (peer !== undefined && isActive(peer)) return isPeerLowered();
    const isKnown = peer !== undefined && !Object.values(peer).includes('unknown');
    return isKnown || isActive(roles());
  }

  /** `force`: whether the peer is ready or not; also where one that is under way waits for the peer. */
  failover(force: boolean): Promise<OrderOutcome> {
    this.#isForced ||= force;
    this.#underWay ??= this.#failover().finally(() => {
      this.#underWay = undefined;
      this.#isForced = false;
      this.#options.onChanged();
    });
    return this.#underWay;
  }

  /** Errors: FILE_WRITE; then nothing has changed. */
  async lock(): Promise<OrderOutcome> {
    const { log, onChanged, roles, peerRoles, whyNotReady, prepare, done } = this.#options;
    const wasActive = isActive(roles());
    const whyNot = whyNotReady();
    await this.#write(true);
    // One that is behind takes over all the same.
    if (wasActive && peerRoles() !== undefined) await prepare();
    if (this.#isOrdered && !this.#isLocked) log.info('This host is locked');
    this.#isLocked = this.#isOrdered;
    onChanged();
    const tookMs = this.#isLocked ? await this.#untilAway() : undefined;
    done();
    if (!this.#isOrdered) return this.#outcome(false, 0, 'This host has been unlocked meanwhile');
    if (tookMs === undefined)
      return this.#outcome(
        false,
        0,
        `This host is locked, but still active: ${whyNot || 'nobody has taken over'}`,
      );
    return this.#outcome(true, wasActive ? tookMs : 0, 'This host is locked and not active');
  }

  /** Errors: FILE_WRITE; then nothing has changed. */
  async unlock(): Promise<OrderOutcome> {
    const { log, onChanged } = this.#options;
    await this.#write(false);
    if (this.#isLocked) log.info('This host is unlocked');
    this.#isLocked = false;
    onChanged();
    const tookMs = await this.#untilHere();
    if (this.#isOrdered) return this.#outcome(false, 0, 'This host has been locked meanwhile');
    if (tookMs === undefined)
      return this.#outcome(true, 0, 'This host is not locked, but its VIPs have not come back yet');
    return this.#outcome(true, tookMs, 'This host is not locked');
  }

  /** One order after the other, so that the file says what the last of them did. Errors: FILE_WRITE. */
  async #write(isLocked: boolean): Promise<void> {
    this.#written = this.#written.catch(() => undefined).then(() => this.#options.file.put(isLocked));
    await this.#written;
    this.#isOrdered = isLocked;
  }

  /**
   * Puts a lock back on disk that somebody has removed there, so that the next agent knows of it. To be called from time
   * to time; never rejects.
   */
  async keep(): Promise<void> {
    if (!this.#isOrdered) return;
    const kept = this.#written
      .catch(() => undefined)
      .then(async () => {
        const { file, log } = this.#options;
        if (!this.#isOrdered || (await file.isThere())) return;
        await file.put(true);
        log.warn('The lock of this host was removed from disk: written again');
      });
    this.#written = kept;
    await kept.catch(() => undefined);
  }

  close(): void {
    this.#closed = true;
  }

  async #failover(): Promise<OrderOutcome> {
    const { roles, whyNotReady, onChanged, prepare, done, log } = this.#options;
    if (Object.values(roles()).every((role) => role === 'unknown'))
      return this.#outcome(false, 0, 'It is not known which host is active: VRRP does not run here');
    if (!isActive(roles()))
      return this.#outcome(true, 0, 'This host is not active: it has nothing to hand over');
    // Under constant change the two are alike only between one change and the next.
    await this.#until(() => this.#isForced || whyNotReady() === '', SETTLE);
    const [force, whyNot] = [this.#isForced, whyNotReady()];
    if (whyNot !== '' && !force)
      return this.#outcome(false, 0, `Refused: ${whyNot}; --force hands over all the same`);
    log.info('Handing over to the peer', { force, whyNotReady: whyNot });
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
    const most = Math.round(this.#move / 100) / 10;
    const why = whyNotReady();
    const words = `The peer has not taken over within ${most} s: this host goes on`;
    return this.#outcome(false, 0, why === '' ? words : `${words}; ${why}`);
  }

  get #move(): number {
    return MOVE + ADVERTS * this.#options.advertInterval();
  }

  /** The milliseconds that it took for VIPs to come back, 0 where none do; undefined where they have not. */
  async #untilHere(): Promise<number | undefined> {
    const { takes, roles, peerRoles, clock } = this.#options;
    if (!takes()) return 0;
    const began = clock.monotonic();
    if (!(await this.#until(() => !takes(), PREPARE + this.#move))) return undefined;
    const tookMs = Math.round(clock.monotonic() - began);
    await this.#until(() => contested(roles(), peerRoles() ?? {}).length === 0, SETTLE);
    return tookMs;
  }

  /** The milliseconds that it took; undefined where traffic is still here. */
  async #untilAway(): Promise<number | undefined> {
    const { clock } = this.#options;
    const began = clock.monotonic();
    const isAway = await this.#until(() => !isActive(this.#options.roles()), this.#move);
    if (!isAway) return undefined;
    const tookMs = Math.round(clock.monotonic() - began);
    // VRRP knows before the peer has said it.
    await this.#until(() => isActive(this.#options.peerRoles() ?? { gone: 'master' }), SETTLE);
    return tookMs;
  }

  /** Whether it came to hold in time. */
  async #until(condition: () => boolean, most: number): Promise<boolean> {
    const { clock } = this.#options;
    for (const end = clock.monotonic() + most; !condition(); ) {
      if (this.#closed || clock.monotonic() > end) return false;
      await new Promise<void>((resolve) => clock.after(LOOK, resolve));
    }
    return true;
  }

  #outcome(ok: boolean, tookMs: number, message: string): OrderOutcome {
    const [here, there] = [isActive(this.#options.roles()), isActive(this.#options.peerRoles() ?? {})];
    const active = here && there ? 'both' : here ? 'this host' : there ? 'peer' : 'unknown';
    return { ok, active, tookMs, message };
  }
}
