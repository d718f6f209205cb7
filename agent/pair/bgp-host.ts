// A host whose VIPs other hosts announce as well: what lowers it, the order to lock it, and its links to the other hosts if the
// settings name them.

import { join } from 'node:path';
import { type Clock, passed, systemClock } from '../base/clock.ts';
import { counted } from '../base/counted.ts';
import type { DataplaneFacts } from '../dataplane/forwarder.ts';
import type { Meter } from '../dataplane/meter.ts';
import type { Log } from '../host/log.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { ReleaseScope } from '../state/release-mark.ts';
import type { StandingReason } from '../vips/announcer.ts';
import type { HostLinks, HostLinksOptions, HostsStatus, OwnReport } from './host-links.ts';
import type { Arriving } from './orders/arrival-counter.ts';
import { Arrivals, type ArrivalsOptions } from './orders/arrivals.ts';
import { MaintenanceFile } from './orders/maintenance-file.ts';
import { type Move, movedAway } from './orders/moved-away.ts';
import type { OrderOutcome } from './orders/orders.ts';
import type { PairedHost } from './pair.ts';
import type { StandingSettings } from './pair-settings.ts';
import type { PairReport } from './peers/report.ts';
import { OwnStanding } from './standing/own-standing.ts';
import { Parity } from './standing/parity.ts';
import type { Lowering } from './standing/standing.ts';

export interface BgpHostOptions {
  readonly settings: () => StandingSettings & { readonly stateDir: string };
  readonly host: PairedHost;
  readonly dataplane: Pick<DataplaneFacts, 'served'> & Pick<Meter, 'status' | 'liveness'>;
  readonly announcer: {
    /** Resolves when routers are told. */
    standing(reasons: readonly StandingReason[]): Promise<void>;
    /** It announces VIPs, or an agent before this one did. */
    readonly isActive: boolean;
    /** Why it cannot tell the routers, '' if it can. */
    readonly fault: () => string;
    /** A router has every VIP of this host. */
    readonly announcesAll: () => boolean;
    /** BIRD does not answer, or has just started. */
    readonly isBlind: () => boolean;
    /** How many routers have the routes of this host now, of how many, and why not all. */
    readonly told: () => Promise<ToldRouters>;
  };
  /** Makes the links to the other hosts; undefined if the settings do not name them. */
  readonly links: ((facts: LinkedFacts) => HostLinks) | undefined;
  readonly clients: ClientsOfHost;
  readonly clock?: Clock;
  readonly log: Log;
}

export interface ToldRouters {
  readonly count: number;
  readonly of: number;
  readonly why: string;
}

export interface ClientsOfHost {
  /** The connections of clients that are open; undefined if they cannot be counted. */
  readonly connections: () => Promise<number | undefined>;
  readonly counter: ArrivalsOptions['counter'];
}

/** Sessions with routers are established within this time after a boot, and have their routes. */
const TELL_TIMEOUT_MS = 10_000;
const TELL_INTERVAL_MS = 100;

/** What the links get of this host. */
export type LinkedFacts = Pick<HostLinksOptions, 'own'> & Pick<HostLinksOptions['hooks'], 'onReport'>;

export class BgpHost {
  readonly #options: BgpHostOptions;
  readonly #clock: Clock;
  readonly #file: MaintenanceFile;
  readonly #parity: Parity;
  readonly #standing: OwnStanding;
  readonly #links: HostLinks | undefined;
  readonly #arrivals: Arrivals;
  /** The last standing that routers get. */
  #told: Promise<void> = Promise.resolve();
  #onReleased: () => void = () => undefined;

  constructor(options: BgpHostOptions) {
    const { settings, host, dataplane, announcer, log } = options;
    const { desired, objects } = host;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#file = new MaintenanceFile(join(settings().stateDir, 'maintenance'));
    this.#parity = new Parity({ desired, served: (key) => dataplane.served(key) });
    this.#links = options.links?.({ own: () => this.#own(), onReport: () => this.#reported() });
    this.#arrivals = new Arrivals({
      counter: options.clients.counter,
      arriving: () => arrivingOf(desired.values()),
      onCounted: () => this.#links?.send(),
      clock: this.#clock,
    });
    this.#standing = new OwnStanding({
      ...{ settings, objects, dataplane, log },
      // Every VIP is local here, so each listener can be tried.
      vrrp: { roles: () => ({ bgp: announcer.isActive ? 'master' : 'backup' }), holds: () => true },
      compared: {
        parity: this.#parity,
        orders: () => ({ isLocked: this.#file.isLocked, handsOver: false }),
        peer: () => this.#other,
      },
      hooks: {
        onChecked: () => {
          this.#standing.judge();
          void this.#file.restore().then(
            (hasRestored) =>
              hasRestored && log.warn('The lock of this host was removed from disk: written again'),
            () => undefined,
          );
        },
        onChanged: (reasons) => {
          this.#told = announcer.standing(reasons);
          this.#links?.send();
        },
      },
    });
  }

  /** Restores the operator's lock and connects to the other hosts. What cannot be done is a fault, not an error. */
  async start(): Promise<void> {
    if (await this.#file.read())
      this.#options.log.warn('This host is in maintenance: headgate maintenance off ends it');
    this.#standing.judge();
    await this.#links?.renew();
    this.#standing.start();
  }

  /** Heaviest first. */
  get lowered(): readonly Lowering[] {
    return this.#standing.lowered;
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  changed(keys: Iterable<string>): void {
    this.#parity.mark(keys);
    void this.#parity.settle().then(() => {
      this.#standing.judge();
      this.#links?.send();
    });
  }

  /** Locks this host, or unlocks it; returns when routers have chosen, or with why that is not known. Errors: FILE_WRITE. */
  async maintenance(isLocked: boolean): Promise<OrderOutcome> {
    const { log } = this.#options;
    const wasLocked = this.#file.isLocked;
    // Counted from before the routers are told.
    const counts = isLocked && !wasLocked;
    if (counts) await this.#arrivals.ask('order', true);
    try {
      await this.#file.set(isLocked);
      if (wasLocked !== isLocked) log.info(isLocked ? 'This host is locked' : 'This host is unlocked');
      return isLocked ? await this.#lock(wasLocked) : await this.#unlock(wasLocked);
    } finally {
      if (counts) await this.#arrivals.ask('order', false);
      if (counts) this.#links?.send();
    }
  }

  /** Reads the credentials and the settings again. */
  async renew(): Promise<void> {
    await this.#links?.renew();
  }

  /** undefined if the settings do not name the other hosts. */
  hosts(): HostsStatus | undefined {
    return this.#links?.status();
  }

  /** The order to release has changed here. */
  releasedChanged(): void {
    this.#links?.send();
  }

  /** What the other hosts have released; undefined for one that is not heard. */
  releasedByOthers(): readonly { readonly name: string; readonly scope: ReleaseScope | undefined }[] {
    return this.#links?.released() ?? [];
  }

  /** Calls back at each report of another host. */
  onReleased(callback: () => void): void {
    this.#onReleased = callback;
  }

  /** As of HostLinks; false without links. */
  get isAnnouncedElsewhere(): boolean {
    return this.#links?.isAnnouncedElsewhere ?? false;
  }

  /** As of HostLinks. */
  get blind(): ReadonlySet<string> {
    return this.#links?.blind ?? new Set();
  }

  /** As of HostLinks. */
  get differing(): ReadonlySet<string> {
    return this.#links?.differing ?? new Set();
  }

  /** What this host reports to the others has changed. */
  send(): void {
    this.#links?.send();
  }

  /** How each host announces a VIP, by name; undefined if the settings do not name them. */
  announcements(address: string): ReturnType<HostLinks['announcements']> | undefined {
    return this.#links?.announcements(address);
  }

  close(): void {
    this.#arrivals.close();
    this.#standing.close();
    this.#links?.close();
  }

  async #lock(wasLocked: boolean): Promise<OrderOutcome> {
    const { announcer, clients } = this.#options;
    this.#standing.judge();
    await this.#told;
    const fault = announcer.fault();
    const state = 'This host is locked';
    if (fault !== '') return untold(state, fault);
    const move = wasLocked ? undefined : await this.#untilMoved();
    if (!this.#file.isLocked)
      return {
        ok: false,
        active: 'unknown',
        tookMs: 0,
        message: 'This host has been unlocked in the meantime',
      };
    const left = await clients.connections();
    const open =
      left === undefined ? 'connections that are open continue' : `${counted(left, 'connection')} left`;
    const { kind = 'quiet', lastMs: tookMs = 0 } = move ?? {};
    return {
      ok: kind !== 'arriving' && kind !== 'alone',
      active:
        kind === 'moved' ? 'other hosts' : kind === 'quiet' || kind === 'uncounted' ? 'unknown' : 'this host',
      tookMs,
      message: `${state}: ${moveInWords(move, this.#arrivals.fault)}; ${open}`,
    };
  }

  async #unlock(wasLocked: boolean): Promise<OrderOutcome> {
    const { announcer } = this.#options;
    const began = this.#clock.monotonic();
    this.#standing.judge();
    await this.#told;
    const fault = announcer.fault();
    const state = 'This host is not locked';
    if (fault !== '') return untold(state, fault);
    const { count, of, why } = await this.#untilTold();
    if (this.#file.isLocked)
      return {
        ok: false,
        active: 'unknown',
        tookMs: 0,
        message: 'This host has been locked in the meantime',
      };
    const tookMs = wasLocked ? Math.round(this.#clock.monotonic() - began) : 0;
    const others = this.lowered.map(({ reason }) => reason);
    const lowered = others.length === 0 ? '' : `, but still lowered: ${others.join(', ')}`;
    const has = `${count === 1 ? 'has' : 'have'} its routes${count === 0 ? ' yet' : ''}`;
    const routers = `${count} of ${counted(of, 'router')} ${has}`;
    const message = `${state}${lowered}; ${routers}${why === '' ? '' : `: ${why}`}`;
    return { ok: true, active: count > 0 ? 'this host' : 'unknown', tookMs, message };
  }

  /** Waits until a router has the routes: after a boot no session is established yet. */
  async #untilTold(): Promise<ToldRouters> {
    const { announcer } = this.#options;
    for (
      const end = this.#clock.monotonic() + TELL_TIMEOUT_MS;
      ;
      await passed(this.#clock, TELL_INTERVAL_MS)
    ) {
      const told = await announcer.told();
      if (told.count > 0 || this.#file.isLocked || this.#clock.monotonic() >= end) return told;
    }
  }

  #untilMoved(): Promise<Move> {
    const links = this.#links;
    const others = (): ReadonlyMap<string, number> | undefined =>
      links &&
      new Map(
        [...links.reports()]
          .filter(([, { lowered }]) => lowered.length === 0)
          .map(([name, { arrivals }]) => [name, arrivals.count]),
      );
    return movedAway({ here: () => this.#arrivals.count, others, clock: this.#clock });
  }

  #reported(): void {
    this.#onReleased();
    const reports = [...(this.#links?.reports().values() ?? [])];
    void this.#arrivals.ask(
      'others',
      reports.some(({ arrivals }) => arrivals.asks),
    );
    this.#standing.judge();
  }

  #own(): OwnReport {
    const { host, dataplane, announcer } = this.#options;
    const { version, desired, objects } = host;
    const { model, running, pending } = this.#parity;
    return {
      version,
      lowered: this.lowered.map(({ reason }) => reason),
      synced: objects() !== 'unread',
      loadBalancers: desired.size,
      pending,
      model,
      running: dataplane.status().serving ? running : '',
      arrivals: { asks: this.#arrivals.isOrdered, count: this.#arrivals.count },
      announcesAll: announcer.announcesAll(),
      isBlind: announcer.isBlind(),
      released: host.released(),
    };
  }

  /** A host that has other objects than this one, or any. */
  get #other(): PairReport | undefined {
    const reports = [...(this.#links?.reports().values() ?? [])].filter(({ model }) => model !== '');
    return reports.find(({ model }) => model !== this.#parity.model) ?? reports[0];
  }
}

function untold(state: string, fault: string): OrderOutcome {
  const message = `${state}, but the routers are not told: ${fault}`;
  return { ok: false, active: 'unknown', tookMs: 0, message };
}

const LAST = 'its routes are the last choice of the routers';

/** `fault`: why new connections are not counted. */
function moveInWords(move: Move | undefined, fault: string): string {
  if (move === undefined) return `${LAST} since an earlier order`;
  const { kind, here, there } = move;
  switch (kind) {
    case 'moved':
      return `${LAST}, which have moved: the last ${counted(there, 'new connection')} came to other hosts`;
    case 'quiet':
      return `${LAST}; no new connection comes here, but too few come to other hosts to know if the routers have moved`;
    case 'arriving':
      return `${LAST}, but new connections still come here: ${here} since the order`;
    case 'alone':
      return `${LAST}, but no other host is connected and not lowered: clients still come here`;
    case 'uncounted':
      return `${LAST}; if they have moved is not known: ${fault || 'new connections are not counted'}`;
  }
}

function arrivingOf(loadBalancers: Iterable<LoadBalancer>): Arriving {
  const vips = new Set<string>();
  let hasDatagrams = false;
  for (const each of loadBalancers) {
    for (const { address } of each.vips) vips.add(address);
    hasDatagrams ||= each.listeners.some(({ protocol }) => protocol === 'UDP' || protocol === 'SCTP');
  }
  return { vips: [...vips], hasDatagrams };
}
