// What lowers this host: checks its dataplane at intervals, judges the result together with the operator's orders and
// the objects, and reports each change once.

import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Liveness, Meter } from '../../dataplane/meter.ts';
import type { Log } from '../../host/log.ts';
import type { StandingReason } from '../../vips/announcer.ts';
import type { StandingSettings } from '../pair-settings.ts';
import type { PairReport } from '../peers/report.ts';
import { isActive, type Roles } from '../roles.ts';
import type { Parity } from './parity.ts';
import { fullStanding, type Lowering, nextStanding, type Standing } from './standing.ts';

/** The desired state comes from nothing yet, from an old snapshot, or from the sources. */
export type ObjectsState = 'unread' | 'kept' | 'live';

export interface OwnStandingOptions {
  /** The current ones. */
  readonly settings: () => StandingSettings;
  readonly objects: () => ObjectsState;
  readonly dataplane: Pick<Meter, 'status' | 'liveness'>;
  readonly vrrp: {
    roles(): Roles;
    /** Whether an address is on this host. */
    holds(address: string): boolean;
  };
  readonly compared: ComparedHosts;
  readonly hooks: OwnStandingHooks;
  readonly log: Log;
}

/** What this host has, desires and is ordered, beside its peer. */
export interface ComparedHosts {
  readonly parity: Pick<Parity, 'model' | 'isSettled' | 'pending'>;
  readonly orders: () => { readonly isLocked: boolean; readonly handsOver: boolean };
  /** undefined without a recent report. */
  readonly peer: () => PairReport | undefined;
}

export interface OwnStandingHooks {
  /** The dataplane has been checked. */
  readonly onChecked: () => void;
  /** What lowers this host has changed. */
  readonly onChanged: (reasons: readonly StandingReason[]) => void;
}

/** Between two checks of a dataplane that is well, and of one that is not. */
const CHECK_INTERVAL_MS = 500;
const FAULT_CHECK_INTERVAL_MS = 100;

/** HAProxy may be silent for so long while it reloads: the old worker serves in the meantime. */
const RELOAD_TIMEOUT_MS = 5_000;

const UNREAD = 'The objects have not been read yet';

export class OwnStanding {
  readonly #options: OwnStandingOptions;
  readonly #rounds: Rounds;
  #standing: Standing = { ...fullStanding, lowered: [{ reason: 'catching-up', message: UNREAD }] };
  #liveness: Liveness = { control: '', listeners: '' };
  /** By performance.now(): a check soon after a reload may still be affected by it. */
  #reloadsUntil = 0;
  #isCatchingUp = true;
  /** undefined: nothing is reported yet. */
  #reported: readonly StandingReason[] | undefined;
  #closed = false;

  constructor(options: OwnStandingOptions) {
    const { log } = options;
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => (this.#isWell ? CHECK_INTERVAL_MS : FAULT_CHECK_INTERVAL_MS),
      work: () => this.#check(),
      onFailed: (error) => log.error('The agent cannot check its dataplane', { error: messageOf(error) }),
    });
  }

  /** Heaviest first. */
  get lowered(): readonly Lowering[] {
    return this.#standing.lowered;
  }

  /** Begins the checks. */
  start(): void {
    this.#rounds.start();
    void this.#rounds.now();
  }

  /** Called after each change that may count. */
  judge(now = performance.now()): void {
    const { dataplane, compared, settings } = this.#options;
    const catchingUp = this.#whyCatchingUp();
    if (catchingUp === '') this.#isCatchingUp = false;
    const { isLocked: maintenance, handsOver: failover } = compared.orders();
    const { control: haproxy, listeners } = this.#liveness;
    const signs = { haproxy, listeners, maintenance, failover, catchingUp };
    const { pairLowerAfter, pairRaiseAfter } = settings();
    if (dataplane.status().isReloading) this.#reloadsUntil = now + pairLowerAfter;
    const isReloading = now < this.#reloadsUntil;
    this.#standing = nextStanding(this.#standing, signs, now, {
      pairLowerAfter: isReloading ? Math.max(pairLowerAfter, RELOAD_TIMEOUT_MS) : pairLowerAfter,
      pairRaiseAfter,
    });
    this.#report(this.#standing.lowered);
  }

  close(): void {
    this.#closed = true;
    this.#rounds.close();
  }

  get #isWell(): boolean {
    return this.#liveness.control === '' && this.#liveness.listeners === '';
  }

  async #check(): Promise<void> {
    const { settings, dataplane, vrrp, hooks } = this.#options;
    const holds = isActive(vrrp.roles()) ? (address: string): boolean => vrrp.holds(address) : undefined;
    const began = performance.now();
    this.#liveness = await dataplane.liveness({ timeoutMs: settings().pairLowerAfter, holds });
    if (this.#closed) return;
    // A dataplane that did not answer was silent from the beginning of the check.
    if (!this.#isWell) this.judge(began);
    hooks.onChecked();
  }

  /**
   * An active host does not have to catch up, and must not lose the VIPs because its agent restarts. So catching up is
   * not reported before the roles are known.
   */
  #report(lowered: readonly Lowering[]): void {
    const { vrrp, hooks, log } = this.#options;
    const isUnknown = Object.values(vrrp.roles()).includes('unknown');
    if (this.#reported === undefined && isUnknown && lowered.some(({ reason }) => reason === 'catching-up'))
      return;
    const before = this.#reported ?? [];
    const reasons = lowered.map(({ reason }) => reason);
    for (const { reason, message } of lowered)
      if (!before.includes(reason)) log.warn('This host is lowered in the pair', { reason, why: message });
    for (const reason of before)
      if (!reasons.includes(reason)) log.info('This host is no longer lowered in the pair', { reason });
    const isNews = this.#reported === undefined || reasons.join() !== before.join();
    this.#reported = reasons;
    if (isNews) hooks.onChanged(reasons);
  }

  /** Only since the start of the agent, and not on an active host. */
  #whyCatchingUp(): string {
    if (!this.#isCatchingUp) return '';
    const { objects, dataplane, vrrp, compared } = this.#options;
    const { parity, peer } = compared;
    if (isActive(vrrp.roles())) return '';
    const state = objects();
    if (state === 'unread') return UNREAD;
    if (!dataplane.status().serving) return 'HAProxy does not serve yet';
    if (!parity.isSettled || parity.pending > 0) return 'HAProxy does not serve everything as it should yet';
    // A snapshot may be older than the objects of the peer.
    const theirs = peer()?.model;
    if (state === 'kept' && theirs !== undefined && theirs !== parity.model)
      return 'The objects come from a snapshot, and the peer has others';
    return '';
  }
}
