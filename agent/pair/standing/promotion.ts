// How this host stands, as VRRP is told. A host that rises above a peer that is master takes its VIPs; that shall cost
// no connection, so both hosts are prepared before. To fall is never waited for, nor for a peer that does not serve.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { Log } from '../../host/log.ts';
import type { StandingReason } from '../../vips/announcer.ts';
import type { PairReport } from '../peers/report.ts';
import { isActive, type Priorities, type Roles } from '../roles.ts';

export interface RiseOptions {
  readonly roles: () => Roles;
  /** undefined while it is not heard. */
  readonly peer: () => PairReport | undefined;
  /** With what lowers a host. */
  readonly priorities: (reasons: readonly StandingReason[]) => Priorities;
  /** Tells VRRP. */
  readonly stand: (reasons: readonly StandingReason[]) => void;
  /** Prepare both hosts for VIPs that come, or go. Neither rejects, nor takes more than some seconds. */
  readonly prepare: () => Promise<void>;
  readonly give: () => Promise<void>;
  readonly log: Log;
  readonly clock?: Clock;
}

/**
 * Milliseconds for a peer to be heard, and for one of both to be known as master, before this host rises; where the
 * peer is dead VRRP does not wait for that.
 */
export const HEAR = 3_000;

export class Rise {
  readonly #options: RiseOptions;
  readonly #clock: Clock;
  #wanted: readonly StandingReason[] | undefined;
  /** As VRRP has been told; undefined: an agent before this one has, or nobody. */
  #stands: readonly StandingReason[] | undefined;
  #isPreparing = false;
  #cancelHearing: (() => void) | undefined;
  #closed = false;

  constructor(options: RiseOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** What lowers this host from now on. */
  stand(reasons: readonly StandingReason[]): void {
    this.#wanted = reasons;
    this.look();
  }

  /** Something else may be known of either host. */
  look(): void {
    if (this.#wanted === undefined || this.#wanted === this.#stands || this.#closed) return;
    const [now, then] = [this.priorities, this.#options.priorities(this.#wanted)];
    const isRising = Object.keys(then).some((name) => (then[name] ?? 0) > (now[name] ?? 0));
    const peer = this.#options.peer();
    const isUnheard = peer === undefined && !isActive(this.#options.roles());
    const { gains, open } = movesOf(now, then, this.#options.roles(), peer);
    // Where VRRP has not been told anything yet this host has just started, and has not given anything away.
    const isOpen = open.length > 0 && this.#stands !== undefined;
    if (isRising && (isUnheard || isOpen)) {
      this.#cancelHearing ??= this.#clock.after(HEAR, () => this.#tell());
      return;
    }
    this.#hear();
    if (gains.length === 0) this.#tell();
    else if (!this.#isPreparing) void this.#prepare();
  }

  /** As VRRP has them of this host. */
  get priorities(): Priorities {
    return this.#options.priorities(this.#reasons);
  }

  /**
   * Before VRRP has others because the settings are others: nobody is in a hurry, whether VIPs come by that or go. Where
   * some come and others go, only those that come are prepared for.
   */
  async beforePriorities(next: RiseOptions['priorities']): Promise<void> {
    const { roles, peer, prepare, give, log } = this.#options;
    const changes = [this.priorities, next(this.#reasons), roles(), peer()] as const;
    const { gains, losses } = movesOf(...changes);
    if (gains.length + losses.length === 0) return;
    log.info('Other priorities are taken when both hosts are prepared', { gains, losses });
    await (gains.length > 0 ? prepare() : give());
  }

  /** Whether VIPs of the peer are about to come to this host because it stands as it does, or is going to. */
  get takes(): boolean {
    if (this.#wanted === undefined) return false;
    const { priorities, roles, peer } = this.#options;
    const { gains, open } = movesOf({}, priorities(this.#wanted), roles(), peer());
    return gains.length + open.length > 0;
  }

  close(): void {
    this.#closed = true;
    this.#hear();
  }

  /** What lowers this host, as VRRP has been told. */
  get #reasons(): readonly StandingReason[] {
    return this.#stands ?? (isActive(this.#options.roles()) ? [] : ['haproxy']);
  }

  async #prepare(): Promise<void> {
    this.#isPreparing = true;
    this.#options.log.info(
      'This host is about to take over from its peer, which goes on until both are prepared',
    );
    await this.#options.prepare();
    this.#isPreparing = false;
    this.#tell();
  }

  #tell(): void {
    this.#hear();
    if (this.#wanted === undefined || this.#wanted === this.#stands || this.#closed) return;
    this.#stands = this.#wanted;
    this.#options.stand(this.#wanted);
  }

  #hear(): void {
    this.#cancelHearing?.();
    this.#cancelHearing = undefined;
  }
}

type Rival = Pick<PairReport, 'roles' | 'priorities' | 'lowered' | 'running'>;

/**
 * The instances that change hands between this host and a peer that serves, when its priorities change from these to
 * those. `open`: those that would come to this host were they the peer's, but it is not known yet who has them.
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
  for (const [name, is] of Object.entries(peer !== undefined && serves(peer) ? after : {})) {
    const [was, theirs] = [before[name] ?? 0, peer?.priorities[name]];
    const [isOurs, isTheirs] = [own[name] === 'master', peer?.roles[name] === 'master'];
    if (theirs === undefined || (isOurs && isTheirs)) continue;
    if (!isOurs && was <= theirs && is > theirs) (isTheirs ? gains : open).push(name);
    if (isOurs && was >= theirs && is < theirs) losses.push(name);
  }
  return { gains, losses, open };
}

function serves({ running, lowered }: Rival): boolean {
  return running !== '' && !lowered.includes('haproxy') && !lowered.includes('listeners');
}
