// A planned failover without a lost connection: the agents of both hosts prepare each other before the VIPs move. Then
// both hosts serve the VIPs for a while (window.ts): the new master passes on the connections of the old one, which
// answers its clients as before.

import { randomBytes } from 'node:crypto';
import { systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import { type HandoverReport, type PairReport, UNCOUNTED } from '../peers/report.ts';
import { isActive, masterOf } from '../roles.ts';
import { HandoverWindow, type WindowOptions } from './window.ts';

export interface HandoverOptions extends WindowOptions {
  readonly metrics: { handedOver(connections: 'kept' | 'cut'): void };
}

export interface HandoverStatus {
  /** Why a planned failover from this host would cut connections, '' if it would not. */
  readonly whyNot: string;
  /** When connections to VIPs that have moved are cut at the latest, ISO 8601; '' without a handover. */
  readonly until: string;
  /** How many of them continue here, to VIPs that the peer has; undefined if not counted yet. */
  readonly left: number | undefined;
}

const PEER_CANNOT = 'The peer cannot pass connections on';
const SWITCHED_OFF = 'It is switched off by "pairDrainTimeout"';
/** For the peer to prepare; then the VIPs move all the same. */
const PEER_TIMEOUT_MS = 5_000;
/** For both hosts to prepare, even on a very busy machine. */
const TIMEOUT_MS = 7_000;
/** Between two checks of what a handover needs of this host. */
const CHECK_INTERVAL_MS = 60_000;

export class Handover {
  readonly #options: HandoverOptions;
  readonly #window: HandoverWindow;
  /** Parameters of the kernel and its modules may change while the agent runs. */
  readonly #checks: Rounds;
  #whyNotGive = 'It has not been checked yet';
  #whyNotTake = this.#whyNotGive;
  readonly #checked = Promise.withResolvers<void>();
  #isChecked = false;

  /** This host gives: its order to the peer, and the instances that leave without an operator's order. */
  #order = '';
  #leaving: readonly string[] = [];
  #giving: Promise<void> | undefined;
  #onPeerReady: () => void = () => undefined;
  #onPeerChecked: () => void = () => undefined;
  /** The peer's last request for VIPs. */
  #granted = '';

  /** This host takes: the peer's order for which it prepares, and for which it is prepared. */
  #preparingFor = '';
  #preparedFor = '';
  /** This host's request for VIPs. */
  #request = '';
  #requesting: Promise<void> | undefined;
  #onPrepared: () => void = () => undefined;
  #closed = false;

  constructor(options: HandoverOptions) {
    this.#options = options;
    this.#checks = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) =>
        options.log.error('Cannot check what a handover needs', { error: messageOf(error) }),
      clock: options.clock ?? systemClock,
    });
    this.#window = new HandoverWindow(options, {
      isMoving: () => this.#order !== '',
      onCheck: () => {
        const stay = masterOf(options.roles());
        if (this.#leaving.some((name) => !stay.includes(name))) this.done();
      },
      // VIPs that were about to leave have stayed.
      onEnd: () => (this.#leaving.length > 0 ? this.done() : options.send()),
    });
  }

  /** What an agent before this one has begun continues. */
  async start(): Promise<void> {
    if (this.#options.drainTimeout === 0) {
      this.#whyNotGive = SWITCHED_OFF;
      this.#endChecks();
      return;
    }
    await this.#check();
    await this.#window.start(this.#whyNotTake === '');
    this.#endChecks();
    if (!this.#closed) this.#checks.start();
  }

  #endChecks(): void {
    this.#isChecked = true;
    this.#checked.resolve();
    this.#options.send();
  }

  async #check(): Promise<void> {
    const { kernel, send } = this.#options;
    const before = [this.#whyNotGive, this.#whyNotTake];
    [this.#whyNotGive, this.#whyNotTake] = [await kernel.whyNotLend(), await kernel.whyNotDivert()];
    if (this.#closed) return;
    const news = new Set(
      [this.#whyNotGive, this.#whyNotTake].filter((why) => why !== '' && !before.includes(why)),
    );
    for (const why of news) this.#warnOfCut(why);
    send();
  }

  get report(): HandoverReport {
    return {
      can: this.#whyNotTake === '',
      checked: this.#isChecked,
      gives: this.#whyNotGive === '',
      link: this.#window.link,
      asks: this.#order,
      ready: this.#preparedFor,
      wants: this.#request,
      left: this.#window.left ?? UNCOUNTED,
    };
  }

  /** This host prepares to give its VIPs, or is about to. */
  get isMoving(): boolean {
    return this.#giving !== undefined || this.#order !== '';
  }

  get status(): HandoverStatus {
    const peer = this.#options.peer();
    const whyNot = this.#whyNotGive || (peer?.handover.can === false ? PEER_CANNOT : '');
    return { whyNot, until: this.#window.end?.toISOString() ?? '', left: this.#window.left };
  }

  /**
   * Called before this host gives way: prepares it and its peer. Never rejects, and takes some seconds at most: a failed
   * preparation is no reason to stay.
   */
  prepare(): Promise<void> {
    this.#giving ??= this.#prepare().finally(() => {
      this.#giving = undefined;
    });
    return this.#within(TIMEOUT_MS, this.#giving);
  }

  /** As prepare(), before VIPs go to the peer without an operator's order; the agent notices when they have gone. */
  async give(): Promise<void> {
    const leaving = masterOf(this.#options.roles());
    await this.prepare();
    if (this.#order !== '') this.#leaving = leaving;
  }

  /** As prepare(), before this host takes VIPs from the peer: requests them, so that the peer gives. */
  request(): Promise<void> {
    this.#requesting ??= this.#sendRequest().finally(() => {
      this.#requesting = undefined;
    });
    return this.#requesting;
  }

  /** The VIPs have moved, or will stay. */
  done(): void {
    this.#order = '';
    this.#leaving = [];
    this.#window.moved();
    this.#options.send();
  }

  /** The peer's report has changed, or is too old. */
  peerChanged(): void {
    const peer = this.#options.peer();
    if (peer === undefined || this.#closed) return;
    this.#window.peerReported();
    if (peer.handover.checked) this.#onPeerChecked();
    const { asks, ready, wants } = peer.handover;
    if (this.#order !== '' && ready === this.#order) this.#onPeerReady();
    if (wants !== '' && wants !== this.#granted) void this.#grant(wants);
    if (asks === '' || asks === this.#preparingFor || this.#whyNotTake !== '') return;
    this.#preparingFor = asks;
    void this.#take(peer).catch((error) => this.#warnOfCut(messageOf(error)));
  }

  close(): void {
    this.#closed = true;
    this.#checks.close();
    this.#window.close();
  }

  async #sendRequest(): Promise<void> {
    const { peer, send, drainTimeout } = this.#options;
    // A host that has just started may be about to take VIPs before its checks have ended.
    await this.#within(TIMEOUT_MS, this.#checked.promise);
    if (drainTimeout === 0 || this.#whyNotTake !== '' || peer()?.handover.gives !== true) return;
    const prepared = Promise.withResolvers<void>();
    this.#onPrepared = prepared.resolve;
    const order = peer()?.handover.asks;
    if (this.#preparedFor !== '' && this.#preparedFor === order) return;
    // If the peer has given an order already, no request is needed.
    if (order === '') {
      this.#request = newToken();
      send();
    }
    await this.#within(TIMEOUT_MS, prepared.promise);
    this.#request = '';
    send();
  }

  /** The VIPs move when the peer is prepared, or when it stops waiting. */
  async #grant(request: string): Promise<void> {
    this.#granted = request;
    const leaving = masterOf(this.#options.roles());
    if (leaving.length === 0) return;
    this.#options.log.info('The peer is about to take over', { instances: leaving });
    await this.give();
  }

  async #prepare(): Promise<void> {
    const { roles, vipsOf, drainTimeout, metrics } = this.#options;
    await this.#checked.promise;
    const vips = vipsOf(masterOf(roles()));
    if (drainTimeout === 0 || vips.length === 0) return;
    const why = this.#whyNotGive || (await this.#give(vips).catch(messageOf));
    metrics.handedOver(why === '' ? 'kept' : 'cut');
    if (why !== '') this.#warnOfCut(why);
  }

  /** Why connections will be cut, '' if they will not. In either case this host serves what still comes to it. */
  async #give(vips: readonly string[]): Promise<string> {
    const { peer, roles, send } = this.#options;
    await this.#window.lend(vips, () => {
      // VIPs that leave now belong to this handover, not to an earlier one.
      this.#leaving = [];
    });
    if (peer()?.handover.checked === false) {
      const checked = Promise.withResolvers<void>();
      this.#onPeerChecked = checked.resolve;
      await this.#within(PEER_TIMEOUT_MS, checked.promise);
    }
    if (peer()?.handover.can !== true) return PEER_CANNOT;
    if (!isActive(roles())) return `This host was not prepared within ${TIMEOUT_MS} ms`;
    const ready = Promise.withResolvers<void>();
    this.#onPeerReady = ready.resolve;
    const order = newToken();
    this.#order = order;
    send();
    await this.#within(PEER_TIMEOUT_MS, ready.promise);
    if (peer()?.handover.ready === order) return '';
    // A peer that prepares later would take its own new connections for those of this host.
    this.#order = '';
    send();
    return `The peer was not prepared within ${PEER_TIMEOUT_MS} ms`;
  }

  #take(peer: PairReport): Promise<void> {
    return this.#window.divert(peer, () => {
      this.#preparedFor = peer.handover.asks;
      this.#onPrepared();
      this.#options.send();
    });
  }

  #warnOfCut(why: string): void {
    this.#options.log.warn('A planned failover cuts connections', { why });
  }

  /** Resolves with `done`, or after the timeout. */
  #within(timeoutMs: number, done: Promise<void>): Promise<void> {
    const { clock = systemClock } = this.#options;
    const over = Promise.withResolvers<void>();
    const cancel = clock.after(timeoutMs, over.resolve);
    return Promise.race([done.finally(cancel), over.promise]);
  }
}

/** 16 hex digits. */
function newToken(): string {
  return randomBytes(8).toString('hex');
}
