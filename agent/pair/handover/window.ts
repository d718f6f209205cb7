// The time in which both hosts serve VIPs that have moved: prepares the kernel for it, counts the connections that are
// left, and ends it. Owns the rules and addresses that the kernel gets for it; all of them time out without the agent.

import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { serial } from '../../base/serial.ts';
import type { Log } from '../../host/log.ts';
import { type BothHosts, type Link, noLink, type PairReport } from '../peers/report.ts';
import { masterOf } from '../roles.ts';
import type { ForwardedPort } from './diversion.ts';
import type { HandoverKernel } from './kernel.ts';

export interface WindowOptions extends BothHosts {
  readonly kernel: Pick<HandoverKernel, keyof HandoverKernel>;
  /** The VIPs of these VRRP instances. */
  readonly vipsOf: (instances: readonly string[]) => readonly string[];
  /** TCP ports that the kernel forwards. */
  readonly forwarded: () => readonly ForwardedPort[];
  /** The report of this host has changed. */
  readonly send: () => void;
  /** Milliseconds for which connections may continue; 0: not at all. */
  readonly drainTimeout: number;
  readonly log: Log;
  readonly clock?: Clock;
}

export interface WindowObserver {
  /** VIPs are about to move: the peer would take a count of 0 for the end. */
  isMoving(): boolean;
  onCheck(): void;
  onEnd(): void;
}

interface Window {
  /** This host's part in the last handover. */
  readonly part: 'gives' | 'takes';
  /** The VIPs on this host's loopback interface. */
  readonly lent: readonly string[];
  /** By the monotonic clock, milliseconds: the last handover was prepared or done, and everything ends. */
  readonly since: number;
  readonly until: number;
  /** How often this host has checked since the last report: a time would count stalls of this host as well. */
  readonly silentChecks: number;
}

/** For so long nothing ends yet: neighbours may learn of the move only from a second announcement. */
const SETTLE_MS = 3_000;
const CHECK_INTERVAL_MS = 500;
/** Without a report for so long the peer may be dead: its clients must notice. */
const SILENCE_MS = 10_000;

export class HandoverWindow {
  readonly #options: WindowOptions;
  readonly #observer: WindowObserver;
  readonly #clock: Clock;
  /** For changes of the kernel, one at a time. */
  readonly #turns = serial();
  #link: Link = noLink;
  #window: Window | undefined;
  /** The VIPs in this host's rules. */
  #diverted: readonly string[] = [];
  #left: number | undefined = 0;
  #canDivert = false;
  #cancelCheck: () => void = () => undefined;
  #closed = false;

  constructor(options: WindowOptions, observer: WindowObserver) {
    this.#options = options;
    this.#observer = observer;
    this.#clock = options.clock ?? systemClock;
  }

  /** Reads the place of this host on the network. Later removes the rules of an agent before this one. */
  async start(canDivert: boolean): Promise<void> {
    const { kernel, drainTimeout } = this.#options;
    this.#canDivert = canDivert;
    this.#link = await kernel.link().catch(() => noLink);
    const tidy = async () => (this.#window === undefined ? kernel.endDiversion() : undefined);
    if (canDivert && !this.#closed)
      this.#cancelCheck = this.#clock.after(
        drainTimeout + CHECK_INTERVAL_MS,
        () => void this.#turns.run(tidy).catch(() => undefined),
      );
  }

  /** The place of this host on the network of the VIPs. */
  get link(): Link {
    return this.#link;
  }

  /** How many connections to VIPs that the peer has continue here; undefined if not counted yet. */
  get left(): number | undefined {
    return this.#left;
  }

  /** The latest end; undefined if no handover is under way. */
  get end(): Date | undefined {
    return this.#window && new Date(this.#clock.wall() + this.#window.until - this.#clock.monotonic());
  }

  /** Lets this host serve the VIPs also after they have moved to the peer. */
  lend(vips: readonly string[], onLent: () => void): Promise<void> {
    const { kernel, drainTimeout } = this.#options;
    return this.#turns.run(async () => {
      this.#left = undefined;
      this.#link = await kernel.link();
      // Connections of an earlier handover continue, until the same end.
      const lent = [...new Set([...(this.#window?.lent ?? []), ...vips])];
      await kernel.lend(lent, secondsOf(drainTimeout));
      onLent();
      this.#begin('gives', lent);
    });
  }

  /** Lets this host pass the peer's connections on to it. Fails if the peer's order is over by then. */
  divert({ roles, handover }: PairReport, onDiverted: () => void): Promise<void> {
    const { kernel, vipsOf, forwarded, drainTimeout, peer } = this.#options;
    return this.#turns.run(async () => {
      const instances = masterOf(roles);
      // Connections of an earlier handover continue.
      const vips = [...new Set([...this.#diverted, ...vipsOf(instances)])];
      this.#link = await kernel.link();
      const own = await kernel.connections(vips);
      await kernel.divert({
        peer: handover.link,
        vips,
        forwarded: forwarded(),
        own,
        seconds: secondsOf(drainTimeout),
      });
      this.#canDivert = true;
      const isMaster = masterOf(this.#options.roles()).some((name) => instances.includes(name));
      if (isMaster || peer()?.handover.asks !== handover.asks) {
        this.#diverted = [];
        await kernel.endDiversion();
        throw new Error('This host was not prepared in time');
      }
      this.#left = 0;
      this.#diverted = vips;
      this.#begin('takes', this.#window?.lent ?? []);
      onDiverted();
    });
  }

  /** The VIPs have just moved, or have stayed. */
  moved(): void {
    if (this.#window !== undefined) this.#window = { ...this.#window, since: this.#clock.monotonic() };
  }

  peerReported(): void {
    if (this.#window !== undefined) this.#window = { ...this.#window, silentChecks: 0 };
  }

  /** The kernel's part continues without the agent, until it times out. */
  close(): void {
    this.#closed = true;
    this.#cancelCheck();
  }

  #begin(part: Window['part'], lent: readonly string[]): void {
    const now = this.#clock.monotonic();
    this.#window = { part, lent, since: now, until: now + this.#options.drainTimeout, silentChecks: 0 };
    this.#checkLater();
  }

  #checkLater(): void {
    this.#cancelCheck();
    if (!this.#closed)
      this.#cancelCheck = this.#clock.after(
        CHECK_INTERVAL_MS,
        () => void this.#turns.run(() => this.#check()),
      );
  }

  async #check(): Promise<void> {
    const { peer, send } = this.#options;
    if (this.#window === undefined || this.#closed) return;
    this.#checkLater();
    this.#window = { ...this.#window, silentChecks: this.#window.silentChecks + 1 };
    this.#observer.onCheck();
    const window = this.#window;
    const isGiver = window.part === 'gives';
    if (isGiver && !this.#observer.isMoving() && isSettled(window, this.#clock.monotonic())) {
      this.#left = await this.#countLeft(window);
      send();
    }
    const left = isGiver ? this.#left : peer()?.handover.left;
    const why = whyOver(this.#window, left, this.#clock.monotonic());
    if (why !== '') await this.#end(window, why);
  }

  /** VIPs that are back, or have stayed, do not count. */
  async #countLeft({ lent }: Window): Promise<number | undefined> {
    const { roles, vipsOf, kernel } = this.#options;
    const here = new Set(vipsOf(masterOf(roles())));
    const away = lent.filter((vip) => !here.has(vip));
    if (away.length === 0) return 0;
    return kernel.connections(away).then(
      ({ length }) => length,
      () => undefined,
    );
  }

  async #end({ lent }: Window, why: string): Promise<void> {
    const { kernel, log } = this.#options;
    log.info('A handover is over', { why, connections: this.#left ?? 0 });
    this.#window = undefined;
    this.#diverted = [];
    this.#cancelCheck();
    this.#left = 0;
    this.#observer.onEnd();
    try {
      if (this.#canDivert) await kernel.endDiversion();
      await kernel.takeBack(lent);
    } catch (error) {
      log.warn('The rules and addresses of a handover stay until they time out', { error: messageOf(error) });
    }
  }
}

/** The connections may be counted: all neighbours know of the move. */
function isSettled({ since }: Window, now: number): boolean {
  return now >= since + SETTLE_MS;
}

/** Why it is over, '' if it continues. `left`: on the host that gave the VIPs; undefined or UNCOUNTED if unknown. */
function whyOver(window: Window, left: number | undefined, now: number): string {
  if (now >= window.until) return 'It has reached its time limit';
  if (!isSettled(window, now)) return '';
  if (left === 0) return 'No connection is left';
  const isSilent = window.silentChecks * CHECK_INTERVAL_MS > SILENCE_MS;
  return window.part === 'takes' && isSilent ? 'The peer is not heard any more' : '';
}

/** For the kernel; a little longer than for the agent. */
function secondsOf(milliseconds: number): number {
  return Math.ceil(milliseconds / 1_000) + 1;
}
