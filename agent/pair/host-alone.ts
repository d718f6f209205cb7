// A host whose VIPs other hosts announce as well: what lowers it, the order to lock it, and its links to the other hosts if the
// settings name them.

import { join } from 'node:path';
import { type Clock, passed, systemClock } from '../base/clock.ts';
import { counted } from '../base/counted.ts';
import type { DataplaneFacts } from '../dataplane/forwarder.ts';
import type { Meter } from '../dataplane/meter.ts';
import type { Log } from '../host/log.ts';
import type { StandingReason } from '../vips/announcer.ts';
import type { HostLinks, HostLinksOptions, HostsStatus, OwnReport } from './host-links.ts';
import { MaintenanceFile } from './orders/maintenance-file.ts';
import type { OrderOutcome } from './orders/orders.ts';
import type { PairedHost } from './pair.ts';
import type { StandingSettings } from './pair-settings.ts';
import type { PairReport } from './peers/report.ts';
import { OwnStanding } from './standing/own-standing.ts';
import { Parity } from './standing/parity.ts';
import type { Lowering } from './standing/standing.ts';

export interface HostAloneOptions {
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
  };
  /** Makes the links to the other hosts; undefined if the settings do not name them. */
  readonly links: ((facts: LinkedFacts) => HostLinks) | undefined;
  /** The connections of clients that are open; undefined if they cannot be counted. */
  readonly connections: () => Promise<number | undefined>;
  readonly clock?: Clock;
  readonly log: Log;
}

/** What the links get of this host. */
export type LinkedFacts = Pick<HostLinksOptions, 'own'> & Pick<HostLinksOptions['hooks'], 'onReport'>;

/** Routers choose other hosts within this time: BIRD and FRR take some ms, hardware up to half a second. */
const MOVE_MS = 500;

export class HostAlone {
  readonly #options: HostAloneOptions;
  readonly #clock: Clock;
  readonly #file: MaintenanceFile;
  readonly #parity: Parity;
  readonly #standing: OwnStanding;
  readonly #links: HostLinks | undefined;
  /** The last standing that routers get. */
  #told: Promise<void> = Promise.resolve();

  constructor(options: HostAloneOptions) {
    const { settings, host, dataplane, announcer, log } = options;
    const { desired, objects } = host;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#file = new MaintenanceFile(join(settings().stateDir, 'maintenance'));
    this.#parity = new Parity({ desired, served: (key) => dataplane.served(key) });
    this.#links = options.links?.({ own: () => this.#own(), onReport: () => this.#standing.judge() });
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

  /** Locks this host, or unlocks it; returns when routers have chosen. Errors: FILE_WRITE. */
  async maintenance(isLocked: boolean): Promise<OrderOutcome> {
    const { announcer, connections, log } = this.#options;
    const wasLocked = this.#file.isLocked;
    const began = this.#clock.monotonic();
    await this.#file.set(isLocked);
    if (wasLocked !== isLocked) log.info(isLocked ? 'This host is locked' : 'This host is unlocked');
    this.#standing.judge();
    await this.#told;
    const fault = announcer.fault();
    if (fault === '' && wasLocked !== isLocked) await passed(this.#clock, MOVE_MS);
    const tookMs = wasLocked === isLocked ? 0 : Math.round(this.#clock.monotonic() - began);
    const state = isLocked ? 'This host is locked' : 'This host is not locked';
    if (fault !== '')
      return {
        ok: false,
        active: 'unknown',
        tookMs,
        message: `${state}, but the routers are not told: ${fault}`,
      };
    const others = this.lowered.filter(({ reason }) => reason !== 'maintenance').map(({ reason }) => reason);
    if (!isLocked) {
      const message = others.length === 0 ? state : `${state}, but still lowered: ${others.join(', ')}`;
      return { ok: true, active: 'this host', tookMs, message };
    }
    const left = await connections();
    const open =
      left === undefined ? 'connections that are open continue' : `${counted(left, 'connection')} left`;
    const message = `${state}: its routes are the last choice of the routers; ${open}`;
    return { ok: true, active: 'unknown', tookMs, message };
  }

  /** Reads the credentials and the settings again. */
  async renew(): Promise<void> {
    await this.#links?.renew();
  }

  /** undefined if the settings do not name the other hosts. */
  hosts(): HostsStatus | undefined {
    return this.#links?.status();
  }

  /** How each host announces a VIP, by name; undefined if the settings do not name them. */
  announcements(address: string): ReturnType<HostLinks['announcements']> | undefined {
    return this.#links?.announcements(address);
  }

  close(): void {
    this.#standing.close();
    this.#links?.close();
  }

  #own(): OwnReport {
    const { host, dataplane } = this.#options;
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
    };
  }

  /** A host that has other objects than this one, or any. */
  get #other(): PairReport | undefined {
    const reports = [...(this.#links?.reports().values() ?? [])].filter(({ model }) => model !== '');
    return reports.find(({ model }) => model !== this.#parity.model) ?? reports[0];
  }
}
