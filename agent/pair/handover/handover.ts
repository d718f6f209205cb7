// A planned failover that costs no connection. Both hosts serve the VIPs for a while: the one that has them passes on to
// its peer what was connected there, and the peer answers as if it had them still. It ends when nothing is left of
// that, at a deadline, or by itself where an agent is gone: all that the kernel is given for it times out.

import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import type { PairReport } from '../peers/report.ts';
import { type HandoverReport, type Link, noLink } from '../peers/report.ts';
import { isActive, type Roles } from '../roles.ts';
import type { HandoverKernel } from './kernel.ts';
import { isSettled, LOOK, type Window, whyOver } from './window.ts';

export interface HandoverOptions {
  readonly kernel: Pick<HandoverKernel, keyof HandoverKernel>;
  /** The VIPs of these VRRP instances. */
  readonly vipsOf: (instances: readonly string[]) => readonly string[];
  readonly roles: () => Roles;
  /** undefined while it is not heard. */
  readonly peer: () => PairReport | undefined;
  /** Something has changed that the peer should know. */
  readonly tell: () => void;
  /** Milliseconds for which connections may go on; 0: not at all. */
  readonly drainTimeout: number;
  readonly metrics: { handedOver(connections: 'kept' | 'cut'): void };
  readonly log: Log;
  readonly clock?: Clock;
}

export interface HandoverStatus {
  /** Why a planned failover from this host would cut connections, '' where it would not. */
  readonly whyNot: string;
  /** When connections to VIPs that have moved are cut at the latest, ISO 8601; '' where none go on. */
  readonly until: string;
  /** How many of them go on here, to VIPs that the peer has; -1 where it is not known. */
  readonly left: number;
}

const PEER_CANNOT = 'The peer cannot pass connections on';
const SWITCHED_OFF = 'It is switched off by "pairDrainTimeout"';
/** Milliseconds for the peer to prepare; then the VIPs move without. */
const PREPARE = 5_000;
/** Milliseconds for all of it, on a machine that does not get to it. */
const MOST = 7_000;

export class Handover {
  readonly #options: HandoverOptions;
  readonly #clock: Clock;
  #whyNotGive = 'It has not been looked at yet';
  #whyNotTake = this.#whyNotGive;
  readonly #looked = Promise.withResolvers<void>();
  #link: Link = noLink;
  #window: Window | undefined;
  /** The VIPs that stand in this host's table. */
  #diverted: readonly string[] = [];
  /** This host's order; the peer's for which it prepares, and for which it is prepared. */
  #asks = '';
  #prepares = '';
  #ready = '';
  /** This host's wish to get VIPs; the peer's that was heard last, and the instances that go to it. */
  #wants = '';
  #heardWish = '';
  #goes: readonly string[] = [];
  #left = 0;
  #giving: Promise<void> | undefined;
  #wishing: Promise<void> | undefined;
  #onReady: () => void = () => undefined;
  #onPrepared: () => void = () => undefined;
  /** One thing is done to the kernel at a time. */
  #last: Promise<void> = Promise.resolve();
  #cancelLook: () => void = () => undefined;
  #closed = false;

  constructor(options: HandoverOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** What an agent before this one has begun goes on; what is left of it is tidied up when it must have ended. */
  async start(): Promise<void> {
    const { drainTimeout, kernel, tell, log } = this.#options;
    if (drainTimeout === 0) this.#whyNotGive = SWITCHED_OFF;
    else {
      this.#whyNotGive = await kernel.whyNotLend();
      this.#whyNotTake = await kernel.whyNotDivert();
      this.#link = await kernel.link().catch(() => noLink);
    }
    this.#looked.resolve();
    if (this.#closed || drainTimeout === 0) return;
    for (const why of new Set([this.#whyNotGive, this.#whyNotTake]))
      if (why !== '') log.warn('A planned failover cuts connections', { why });
    tell();
    const tidy = async () => (this.#window === undefined ? kernel.endDiversion() : undefined);
    if (this.#whyNotTake === '')
      this.#cancelLook = this.#clock.after(drainTimeout + LOOK, () => void this.#inTurn(tidy).catch(() => 0));
  }

  get report(): HandoverReport {
    const [can, gives] = [this.#whyNotTake === '', this.#whyNotGive === ''];
    const orders = { asks: this.#asks, ready: this.#ready, wants: this.#wants };
    return { can, gives, link: this.#link, ...orders, left: this.#left };
  }

  get status(): HandoverStatus {
    const peer = this.#options.peer();
    const whyNot = this.#whyNotGive || (peer?.handover.can === false ? PEER_CANNOT : '');
    if (this.#window === undefined) return { whyNot, until: '', left: this.#left };
    const until = new Date(this.#clock.wall() + this.#window.until - this.#clock.monotonic());
    return { whyNot, until: until.toISOString(), left: this.#left };
  }

  /**
   * Before this host gives way: prepares it and its peer. Never rejects, and takes no more than some seconds: what cannot
   * be prepared is no reason to stay.
   */
  prepare(): Promise<void> {
    this.#giving ??= this.#prepare().finally(() => {
      this.#giving = undefined;
    });
    return this.#within(MOST, this.#giving);
  }

  /** Before VIPs go to the peer without an order: prepares for it; that they have gone is noticed. As prepare(). */
  async give(): Promise<void> {
    const goes = masterOf(this.#options.roles());
    await this.prepare();
    if (this.#asks !== '') this.#goes = goes;
  }

  /** Before this host takes VIPs that the peer serves: has both prepared. As prepare(), but for the other side. */
  wish(): Promise<void> {
    this.#wishing ??= this.#wish().finally(() => {
      this.#wishing = undefined;
    });
    return this.#wishing;
  }

  /** The VIPs have moved, or will not. */
  done(): void {
    this.#asks = '';
    this.#goes = [];
    if (this.#window !== undefined) this.#window = { ...this.#window, since: this.#clock.monotonic() };
    this.#options.tell();
  }

  /** The peer has said something, or is not heard any more. */
  heard(): void {
    const peer = this.#options.peer();
    if (peer === undefined || this.#closed) return;
    if (this.#window !== undefined) this.#window = { ...this.#window, silentLooks: 0 };
    const { asks, ready, wants } = peer.handover;
    if (this.#asks !== '' && ready === this.#asks) this.#onReady();
    if (wants !== '' && wants !== this.#heardWish) void this.#grant(wants);
    if (asks === '' || asks === this.#prepares || this.#whyNotTake !== '') return;
    this.#prepares = asks;
    void this.#inTurn(() => this.#take(peer, asks)).catch((error) => this.#cut(messageOf(error)));
  }

  /** What has begun goes on without the agent, until it times out. */
  close(): void {
    this.#closed = true;
    this.#cancelLook();
  }

  /** For what the peer orders now. */
  get #isPrepared(): boolean {
    return this.#ready !== '' && this.#ready === this.#options.peer()?.handover.asks;
  }

  async #wish(): Promise<void> {
    const { peer, tell, drainTimeout } = this.#options;
    // A host that has just begun may be about to rise before it has looked at itself.
    await this.#within(MOST, this.#looked.promise);
    if (drainTimeout === 0 || this.#whyNotTake !== '' || peer()?.handover.gives !== true) return;
    const prepared = Promise.withResolvers<void>();
    this.#onPrepared = prepared.resolve;
    if (this.#isPrepared) return;
    // What the peer orders by itself does as well.
    if (peer()?.handover.asks === '') {
      this.#wants = randomBytes(8).toString('hex');
      tell();
    }
    await this.#within(MOST, prepared.promise);
    this.#wants = '';
    tell();
  }

  /** The peer is about to rise above this host; the VIPs go when it is prepared, or when it does not wait any longer. */
  async #grant(wish: string): Promise<void> {
    this.#heardWish = wish;
    const goes = masterOf(this.#options.roles());
    if (goes.length === 0) return;
    this.#options.log.info('The peer is about to take over', { instances: goes });
    await this.give();
  }

  async #prepare(): Promise<void> {
    const { roles, vipsOf, drainTimeout, metrics } = this.#options;
    await this.#looked.promise;
    const vips = vipsOf(masterOf(roles()));
    if (drainTimeout === 0 || vips.length === 0) return;
    const why = this.#whyNotGive || (await this.#give(vips).catch(messageOf));
    metrics.handedOver(why === '' ? 'kept' : 'cut');
    if (why !== '') this.#cut(why);
  }

  /** Why connections will be cut, '' where they will not. Even then this host serves on what still comes to it. */
  async #give(vips: readonly string[]): Promise<string> {
    const { kernel, peer, roles, tell, drainTimeout } = this.#options;
    await this.#inTurn(async () => {
      this.#left = -1;
      this.#link = await kernel.link();
      // What was given before goes on, to the same end; that it has gone is no end of what begins now.
      const lent = [...new Set([...(this.#window?.lent ?? []), ...vips])];
      await kernel.lend(lent, secondsOf(drainTimeout));
      this.#goes = [];
      this.#begin('gives', lent);
    });
    if (peer()?.handover.can !== true) return PEER_CANNOT;
    if (!isActive(roles())) return `This host was not prepared within ${MOST} ms`;
    const ready = Promise.withResolvers<void>();
    this.#onReady = ready.resolve;
    const order = randomBytes(8).toString('hex');
    this.#asks = order;
    tell();
    await this.#within(PREPARE, ready.promise);
    if (peer()?.handover.ready === order) return '';
    // From now on it is too late for the peer, which would take its own new connections for this host's.
    this.#asks = '';
    tell();
    return `The peer was not prepared within ${PREPARE} ms`;
  }

  /** Prepares this host to get VIPs. */
  async #take({ roles, handover }: PairReport, order: string): Promise<void> {
    const { kernel, vipsOf, drainTimeout, peer, tell } = this.#options;
    const instances = masterOf(roles);
    // What the peer has given before goes on.
    const vips = [...new Set([...this.#diverted, ...vipsOf(instances)])];
    this.#link = await kernel.link();
    const own = await kernel.connections(vips);
    await kernel.divert({ peer: handover.link, vips, own, seconds: secondsOf(drainTimeout) });
    const isMaster = masterOf(this.#options.roles()).some((name) => instances.includes(name));
    if (isMaster || peer()?.handover.asks !== order) {
      this.#diverted = [];
      await kernel.endDiversion();
      throw new Error('This host was not prepared in time');
    }
    this.#left = 0;
    this.#diverted = vips;
    this.#begin('takes', this.#window?.lent ?? []);
    this.#ready = order;
    this.#onPrepared();
    tell();
  }

  #begin(part: Window['part'], lent: readonly string[]): void {
    const now = this.#clock.monotonic();
    this.#window = { part, lent, since: now, until: now + this.#options.drainTimeout, silentLooks: 0 };
    this.#lookLater();
  }

  #lookLater(): void {
    this.#cancelLook();
    if (!this.#closed)
      this.#cancelLook = this.#clock.after(LOOK, () => void this.#inTurn(() => this.#look()));
  }

  async #look(): Promise<void> {
    const { peer, tell } = this.#options;
    if (this.#window === undefined || this.#closed) return;
    this.#lookLater();
    this.#window = { ...this.#window, silentLooks: this.#window.silentLooks + 1 };
    const stay = masterOf(this.#options.roles());
    if (this.#goes.some((name) => !stay.includes(name))) this.done();
    const window = this.#window;
    // Until the VIPs have moved, and for a while after it, nobody knows: the peer would take 0 for the end.
    if (window.part === 'gives' && this.#asks === '' && isSettled(window, this.#clock.monotonic())) {
      this.#left = await this.#countLeft(window);
      tell();
    }
    const left = window.part === 'gives' ? this.#left : peer()?.handover.left;
    const why = whyOver(this.#window, left, this.#clock.monotonic());
    if (why !== '') await this.#end(window, why);
  }

  /** None counts where the VIPs are back, or have stayed. */
  async #countLeft({ lent }: Window): Promise<number> {
    const { roles, vipsOf, kernel } = this.#options;
    const here = new Set(vipsOf(masterOf(roles())));
    const away = lent.filter((vip) => !here.has(vip));
    if (away.length === 0) return 0;
    return kernel.connections(away).then(
      ({ length }) => length,
      () => -1,
    );
  }

  async #end({ lent }: Window, why: string): Promise<void> {
    const { kernel, tell, log } = this.#options;
    log.info('A handover is over', { why, connections: Math.max(this.#left, 0) });
    this.#window = undefined;
    this.#diverted = [];
    this.#cancelLook();
    this.#left = 0;
    // VIPs that were about to move have stayed.
    if (this.#goes.length > 0) this.done();
    else tell();
    try {
      if (this.#whyNotTake === '') await kernel.endDiversion();
      await kernel.takeBack(lent);
    } catch (error) {
      log.warn('What is left of a handover ends by itself', { error: messageOf(error) });
    }
  }

  #cut(why: string): void {
    this.#options.log.warn('A planned failover cuts connections', { why });
  }

  /** Resolves when that does, and when the time is over. */
  #within(milliseconds: number, done: Promise<void>): Promise<void> {
    const over = Promise.withResolvers<void>();
    const cancel = this.#clock.after(milliseconds, over.resolve);
    return Promise.race([done.finally(cancel), over.promise]);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

function masterOf(roles: Roles): readonly string[] {
  return Object.keys(roles).filter((name) => roles[name] === 'master');
}

/** In which the kernel counts; a little more than the agent does. */
function secondsOf(milliseconds: number): number {
  return Math.ceil(milliseconds / 1_000) + 1;
}
