// Promotes this host, or lowers it, in VRRP. Before the priority rises above that of a master, both hosts are prepared, so that
// the VIPs move without a lost connection. A lower priority never waits, nor does a peer that does not serve.
// Why: docs/design/decisions/0010-lowered-never-fault.md

import { type Clock, systemClock } from '../../base/clock.ts';
import type { Log } from '../../host/log.ts';
import type { StandingReason } from '../../vips/announcer.ts';
import type { BothHosts, PairReport } from '../peers/report.ts';
import { isActive, type Priorities, type Roles } from '../roles.ts';

export interface PromotionOptions extends BothHosts {
  /** The priorities of a host that these reasons lower. */
  readonly priorities: (reasons: readonly StandingReason[]) => Priorities;
  /** Sets what lowers this host in VRRP. */
  readonly setStanding: (reasons: readonly StandingReason[]) => void;
  /** Prepare both hosts for VIPs that come, or go. Neither rejects, nor takes more than some seconds. */
  readonly prepareToTake: () => Promise<void>;
  readonly prepareToGive: () => Promise<void>;
  readonly log: Log;
  readonly clock?: Clock;
}

/**
 * A rise waits so long for the first report of the peer, and for one of the hosts to become master. VRRP replaces a dead
 * peer without this wait.
 */
export const PEER_WAIT_MS = 3_000;

export class Promotion {
  readonly #options: PromotionOptions;
  readonly #clock: Clock;
  #desired: readonly StandingReason[] | undefined;
  /** What VRRP has; undefined: what an agent before this one has set. */
  #set: readonly StandingReason[] | undefined;
  #isPreparing = false;
  #cancelWait: (() => void) | undefined;
  #closed = false;

  constructor(options: PromotionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** What lowers this host changes to this. */
  promote(reasons: readonly StandingReason[]): void {
    this.#desired = reasons;
    this.review();
  }

  /** Called after a change of the roles or of the peer's report. */
  review(): void {
    if (this.#desired === undefined || this.#desired === this.#set || this.#closed) return;
    const { roles, peer: peerNow, priorities } = this.#options;
    const [before, after] = [this.priorities, priorities(this.#desired)];
    const isRising = Object.keys(after).some((name) => (after[name] ?? 0) > (before[name] ?? 0));
    const peer = peerNow();
    const isUnknown = peer === undefined && !isActive(roles());
    const { gains, open } = movesOf(before, after, roles(), peer);
    // A host that has just started has not handed over anything.
    const isOpen = open.length > 0 && this.#set !== undefined;
    if (isRising && (isUnknown || isOpen)) {
      this.#cancelWait ??= this.#clock.after(PEER_WAIT_MS, () => this.#apply());
      return;
    }
    this.#endWait();
    if (gains.length === 0) this.#apply();
    else if (!this.#isPreparing) void this.#prepare();
  }

  /** The priorities of this host that VRRP has now. */
  get priorities(): Priorities {
    return this.#options.priorities(this.#reasons);
  }

  /**
   * Called before new settings change the priorities. Prepares both hosts if VIPs move, in either direction; if some
   * come and others go, only for those that come.
   */
  async beforePriorities(next: PromotionOptions['priorities']): Promise<void> {
    const { roles, peer, prepareToTake, prepareToGive, log } = this.#options;
    const { gains, losses } = movesOf(this.priorities, next(this.#reasons), roles(), peer());
    if (gains.length + losses.length === 0) return;
    log.info('The priorities of the settings wait until both hosts are prepared', { gains, losses });
    await (gains.length > 0 ? prepareToTake() : prepareToGive());
  }

  /** VIPs of the peer are about to come to this host. */
  get takes(): boolean {
    if (this.#desired === undefined) return false;
    const { priorities, roles, peer } = this.#options;
    const { gains, open } = movesOf({}, priorities(this.#desired), roles(), peer());
    return gains.length + open.length > 0;
  }

  close(): void {
    this.#closed = true;
    this.#endWait();
  }

  /** What lowers this host in VRRP now. */
  get #reasons(): readonly StandingReason[] {
    return this.#set ?? (isActive(this.#options.roles()) ? [] : ['haproxy']);
  }

  async #prepare(): Promise<void> {
    const { prepareToTake, log } = this.#options;
    this.#isPreparing = true;
    log.info('This host takes over from its peer as soon as both hosts are prepared');
    await prepareToTake();
    this.#isPreparing = false;
    this.#apply();
  }

  #apply(): void {
    this.#endWait();
    if (this.#desired === undefined || this.#desired === this.#set || this.#closed) return;
    this.#set = this.#desired;
    this.#options.setStanding(this.#desired);
  }

  #endWait(): void {
    this.#cancelWait?.();
    this.#cancelWait = undefined;
  }
}

type Rival = Pick<PairReport, 'roles' | 'priorities' | 'lowered' | 'running'>;

/**
 * The instances that move between this host and a peer that serves when this host's priorities change. `open`: would
 * come to this host if the peer is their master, which is not known yet.
 */
export function movesOf(
  before: Priorities,
  after: Priorities,
  own: Roles,
  peer: Rival | undefined,
): Readonly<Record<'gains' | 'losses' | 'open', readonly string[]>> {
  const gains: string[] = [];
  const losses: string[] = [];
  const open: string[] = [];
  if (peer === undefined || !serves(peer)) return { gains, losses, open };
  for (const [name, is] of Object.entries(after)) {
    const [was, theirs] = [before[name] ?? 0, peer.priorities[name]];
    const [isOurs, isTheirs] = [own[name] === 'master', peer.roles[name] === 'master'];
    if (theirs === undefined || (isOurs && isTheirs)) continue;
    if (!isOurs && was <= theirs && is > theirs) (isTheirs ? gains : open).push(name);
    if (isOurs && was >= theirs && is < theirs) losses.push(name);
  }
  return { gains, losses, open };
}

function serves({ running, lowered }: Rival): boolean {
  return running !== '' && !lowered.includes('haproxy') && !lowered.includes('listeners');
}
