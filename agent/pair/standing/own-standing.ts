// What lowers this host, from what is seen of it: looks at its HAProxy from time to time, judges that with all else that
// counts, and says so once where it has changed.

import type { Dataplane, Liveness } from '../../dataplane/dataplane.ts';
import type { Log } from '../../host/log.ts';
import type { StandingReason } from '../../vips/announcer.ts';
import type { Orders } from '../orders/orders.ts';
import type { StandingSettings } from '../pair-settings.ts';
import type { PairReport } from '../peers/report.ts';
import { isActive, type Roles } from '../roles.ts';
import type { Parity } from './parity.ts';
import { fullStanding, type Lowering, nextStanding, type Standing } from './standing.ts';

/** Whether what is desired comes from the sources as they are now, or from what was kept of them. */
export type ObjectsState = 'unread' | 'kept' | 'live';

export interface OwnStandingOptions {
  /** As they are now. */
  readonly settings: () => StandingSettings;
  readonly objects: () => ObjectsState;
  readonly dataplane: Pick<Dataplane, 'status' | 'liveness'>;
  readonly vrrp: {
    roles(): Roles;
    /** Whether an address is on this host. */
    holds(address: string): boolean;
  };
  readonly parity: Pick<Parity, 'model' | 'isSettled' | 'pending'>;
  readonly orders: () => Pick<Orders, 'isLocked' | 'handsOver'>;
  /** undefined while it is not heard. */
  readonly peer: () => PairReport | undefined;
  /** The dataplane has been looked at. */
  readonly onLook: () => void;
  /** Something else lowers this host than before, or nothing any more. */
  readonly onChanged: (reasons: readonly StandingReason[]) => void;
  readonly log: Log;
}

/** Between two looks at the dataplane while it is well, and while it is not. */
const LOOK_INTERVAL_MS = 500;
const FAULT_LOOK_INTERVAL_MS = 100;

/** How long HAProxy may be silent while it reloads: the old worker serves in the meantime. */
const RELOAD_TIMEOUT_MS = 5_000;

const UNREAD = 'The objects have not been read yet';

export class OwnStanding {
  readonly #options: OwnStandingOptions;
  /** Whoever asks before anything has been looked at hears no more than is known. */
  #standing: Standing = { ...fullStanding, lowered: [{ reason: 'catching-up', message: UNREAD }] };
  #seen: Liveness = { control: '', listeners: '' };
  /** Up to when HAProxy counts as reloading, by performance.now(): a look or two after a reload may still be of it. */
  #reloadsUntil = 0;
  #isCatchingUp = true;
  /** What has been said last; undefined: nothing. */
  #told: readonly StandingReason[] | undefined;
  #look: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: OwnStandingOptions) {
    this.#options = options;
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
    const { dataplane, orders, settings } = this.#options;
    const catchingUp = this.#whyCatchingUp();
    if (catchingUp === '') this.#isCatchingUp = false;
    const { isLocked: maintenance, handsOver: failover } = orders();
    const { control: haproxy, listeners } = this.#seen;
    const signs = { haproxy, listeners, maintenance, failover, catchingUp };
    const { pairLowerAfter, pairRaiseAfter: raiseAfter } = settings();
    if (dataplane.status().isReloading) this.#reloadsUntil = now + pairLowerAfter;
    const lowerAfter =
      now < this.#reloadsUntil ? Math.max(pairLowerAfter, RELOAD_TIMEOUT_MS) : pairLowerAfter;
    this.#standing = nextStanding(this.#standing, signs, now, { lowerAfter, raiseAfter });
    this.#tell(this.#standing.lowered);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#look);
  }

  async #lookAgain(): Promise<void> {
    const { settings, dataplane, vrrp, onLook } = this.#options;
    const holds = isActive(vrrp.roles()) ? (address: string): boolean => vrrp.holds(address) : undefined;
    const began = performance.now();
    this.#seen = await dataplane.liveness({ timeoutMs: settings().pairLowerAfter, holds });
    if (this.#closed) return;
    // What did not answer was silent from the moment that it was asked.
    const isWell = this.#seen.control === '' && this.#seen.listeners === '';
    if (!isWell) this.judge(began);
    onLook();
    this.#look = setTimeout(() => void this.#lookAgain(), isWell ? LOOK_INTERVAL_MS : FAULT_LOOK_INTERVAL_MS);
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
    const { objects, dataplane, vrrp, parity, peer } = this.#options;
    if (isActive(vrrp.roles())) return '';
    const read = objects();
    if (read === 'unread') return UNREAD;
    if (!dataplane.status().serving) return 'HAProxy does not serve yet';
    if (!parity.isSettled || parity.pending > 0) return 'HAProxy does not serve everything as it should yet';
    // What was kept may be old: a peer that is there may know better.
    const theirs = peer()?.model;
    if (read === 'kept' && theirs !== undefined && theirs !== parity.model)
      return 'The objects are those that were kept, and the peer has others';
    return '';
  }
}
