// The links between this host and all others of the setting `hosts`: what each has to say, beside what this host has, and which
// of them live. Logs a host that is heard, or is not any more.

import { hash, randomBytes } from 'node:crypto';
import type { Log } from '../host/log.ts';
import type { HostGroup, LbHost, LivingHosts } from '../model/host-group.ts';
import type { PairCredentials } from './peers/credentials.ts';
import type { Refusal } from './peers/heard-peer.ts';
import { PeerLink } from './peers/peer-link.ts';
import { noAuthReport, noHandover, type PairReport } from './peers/report.ts';
import { VipQuestions, type VipSeen } from './peers/vip-questions.ts';
import { type PairParity, parityOf } from './standing/readiness.ts';

export interface HostLinksOptions {
  /** The current one: renew() follows a change. */
  readonly group: () => HostGroup;
  readonly link: {
    readonly port: number;
    /** Path of a file. */
    readonly credentials: string;
    /** As of PeerLinkOptions. */
    readonly tables: () => string;
  };
  /** What this host reports of itself. */
  readonly own: () => OwnReport;
  readonly living: LivingHosts & { readonly isKnown: boolean };
  /** How this host announces a VIP. */
  readonly announcement: (address: string) => VipSeen;
  readonly hooks: HostLinksHooks;
  readonly log: Log;
}

export type OwnReport = Pick<
  PairReport,
  | 'version'
  | 'lowered'
  | 'synced'
  | 'loadBalancers'
  | 'pending'
  | 'model'
  | 'running'
  | 'arrivals'
  | 'announcesAll'
  | 'isBlind'
  | 'released'
>;

export interface HostLinksHooks {
  /** The report of a host has changed, or is too old. */
  readonly onReport: () => void;
  /** As of PeerLink: the HAProxies of all hosts can share their tables. */
  readonly onProved: (credentials: PairCredentials) => Promise<void>;
  readonly onRefused: (why: Refusal) => void;
}

/** What is known of a host of the setting `hosts`. */
export interface HostStatus {
  readonly name: string;
  readonly address: string;
  readonly isSelf: boolean;
  /** '' if its agent reports here and gets this host's reports; otherwise why not. */
  readonly fault: string;
  /** BFD over the back network: '' without one. */
  readonly bfd: 'up' | 'down' | 'unknown' | '';
  /** The version of its agent; '' if it is not heard. */
  readonly version: string;
  /** What lowers it. */
  readonly lowered: readonly string[];
  /** How many load balancers it does not serve as desired yet. */
  readonly pending: number;
  /** Beside this host; of this host itself: whether it serves what is desired. */
  readonly parity: PairParity;
}

export interface HostsStatus {
  readonly hosts: readonly HostStatus[];
  /** The end of the credentials, milliseconds since the epoch; 0 if they cannot be used. */
  readonly credentialsExpire: number;
  readonly fault: string;
}

export class HostLinks {
  readonly #options: HostLinksOptions;
  readonly #instance = randomBytes(8).toString('hex');
  readonly #link: PeerLink;
  readonly #questions: VipQuestions;
  /** The names of the hosts that were heard last. */
  readonly #heard = new Set<string>();
  /** Name of a host → which setting `hosts` it had when it was heard last. */
  readonly #lists = new Map<string, string>();

  constructor(options: HostLinksOptions) {
    const { group, link, announcement, hooks, log } = options;
    this.#options = options;
    this.#link = new PeerLink({
      addresses: () => ({
        own: group().self.address,
        peers: othersOf(group()).map(({ address }) => address),
      }),
      ...link,
      report: () => this.report(),
      hooks: { onPeer: () => this.#changed(), onProved: hooks.onProved, onRefused: hooks.onRefused },
      log,
    });
    this.#questions = new VipQuestions({ announcement, send: () => this.#link.send() });
  }

  /** Connects; again after a change of the hosts or the credentials. What cannot be done is a fault, not an error. */
  renew(): Promise<void> {
    return this.#link.renew();
  }

  /** The report of this host has changed. */
  send(): void {
    this.#link.send();
  }

  /** The last reports of the other hosts, by name; without those that are not heard. */
  reports(): ReadonlyMap<string, PairReport> {
    const found = new Map<string, PairReport>();
    for (const { name, address } of othersOf(this.#options.group())) {
      const report = this.#link.reportOf(address);
      if (report !== undefined && report.instance !== this.#instance) found.set(name, report);
    }
    return found;
  }

  /** What the other hosts have released; undefined for one that is not heard. */
  released(): readonly { readonly name: string; readonly scope: PairReport['released'] | undefined }[] {
    const reports = this.reports();
    return othersOf(this.#options.group()).map(({ name }) => ({ name, scope: reports.get(name)?.released }));
  }

  /** What this host sends to the others. */
  report(): PairReport {
    return {
      ...this.#options.own(),
      instance: this.#instance,
      roles: {},
      priorities: {},
      handover: noHandover,
      announced: [],
      unannounced: 0,
      vips: this.#questions.report,
      vrrpAuth: noAuthReport,
      hosts: digestOf(this.#options.group()),
    };
  }

  /** How each host announces a VIP, by name; undefined for one that does not answer in time. */
  async announcements(address: string): Promise<ReadonlyMap<string, VipSeen | undefined>> {
    const { group, announcement } = this.#options;
    const others = await this.#questions.ask(address, () => this.reports());
    return new Map(
      group().hosts.map(({ name }) => [
        name,
        name === group().self.name ? announcement(address) : others.get(name),
      ]),
    );
  }

  /** Another host has the same VIPs, serves the same, and routers have all of them. */
  get isAnnouncedElsewhere(): boolean {
    const { model, running } = this.#options.own();
    const isAlike = (report: PairReport): boolean =>
      report.announcesAll && report.model === model && report.running === running;
    return [...this.reports().values()].some(isAlike);
  }

  /** The hosts that say that their BIRD does not answer. */
  get blind(): ReadonlySet<string> {
    return new Set([...this.reports()].filter(([, { isBlind }]) => isBlind).map(([name]) => name));
  }

  /** The hosts with another setting `hosts` than this one, as far as they have been heard: their tables stay without an agent. */
  get differing(): ReadonlySet<string> {
    if (this.#lists.size === 0) return new Set();
    const own = digestOf(this.#options.group());
    return new Set([...this.#lists].filter(([, list]) => list !== own).map(([name]) => name));
  }

  status(): HostsStatus {
    const { group, living } = this.#options;
    const { self, hosts } = group();
    const own = this.report();
    const reports = this.reports();
    const alive = living.living();
    const rows = hosts.map((host): HostStatus => {
      const isSelf = host.name === self.name;
      const report = isSelf ? own : reports.get(host.name);
      return {
        name: host.name,
        address: host.address,
        isSelf,
        fault: isSelf ? '' : this.#faultOf(host, report),
        bfd: isSelf || host.back.length === 0 ? '' : bfdOf(living.isKnown, alive.has(host.name)),
        version: report?.version ?? '',
        lowered: report?.lowered ?? [],
        pending: report?.pending ?? 0,
        parity: isSelf ? ownParity(own) : parityOf(own, report),
      };
    });
    return { hosts: rows, credentialsExpire: this.#link.expires, fault: this.#fault(rows) };
  }

  close(): void {
    this.#questions.close();
    this.#link.close();
  }

  #fault(rows: readonly HostStatus[]): string {
    if (this.#link.localFault !== '') return this.#link.localFault;
    const away = rows.filter(({ fault }) => fault !== '');
    if (away.length > 0) return away.map(({ name, fault }) => `Host ${name}: ${fault}`).join('; ');
    const dead = rows.filter(({ bfd }) => bfd === 'down').map(({ name }) => name);
    return dead.length === 0
      ? ''
      : `No BFD over the back network with ${dead.join(', ')}: check the addresses "back" and the link`;
  }

  #faultOf({ address }: LbHost, report: PairReport | undefined): string {
    const theirs = this.#link.reportOf(address);
    if (theirs?.instance === this.#instance) return 'its address leads back to this host';
    if (report === undefined) return 'it is not heard';
    if (report.hosts !== digestOf(this.#options.group()))
      return 'its setting "hosts" is another than that of this host: make the lists equal';
    const fault = this.#link.faultOf(address);
    return fault === '' ? '' : `it does not hear this host: ${fault}`;
  }

  #changed(): void {
    const { group, hooks, log } = this.#options;
    const reports = this.reports();
    for (const [name, report] of reports) {
      if (report.hosts !== '') this.#lists.set(name, report.hosts);
      if (!this.#heard.has(name)) log.info('Another host is heard', { host: name, version: report.version });
      this.#heard.add(name);
    }
    for (const name of this.#heard) {
      if (reports.has(name)) continue;
      this.#heard.delete(name);
      const isListed = group().hosts.some((host) => host.name === name);
      if (isListed) log.warn('Another host is not heard any more', { host: name });
    }
    this.#questions.heard(reports);
    hooks.onReport();
  }
}

function bfdOf(isKnown: boolean, lives: boolean): HostStatus['bfd'] {
  if (!lives) return 'down';
  return isKnown ? 'up' : 'unknown';
}

function digestOf({ hosts }: HostGroup): string {
  return hash(
    'sha256',
    JSON.stringify(hosts.map(({ name, address, back, anchors }) => [name, address, back, anchors])),
  ).slice(0, 16);
}

function othersOf({ self, hosts }: HostGroup): readonly LbHost[] {
  return hosts.filter(({ name }) => name !== self.name);
}

function ownParity({ model, running }: OwnReport): PairParity {
  const isKnown = model !== '' && running !== '';
  return { model: 'same', running: !isKnown ? 'unknown' : model === running ? 'same' : 'differs' };
}
