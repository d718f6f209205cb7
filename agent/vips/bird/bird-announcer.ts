// The announcer for BGP with BIRD: puts its parts together, takes the VIPs and the standing of this host, and reports what the
// routers have.

import { existsSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { MetricFamily } from '../../base/metric-family.ts';
import { Reconciler } from '../../base/reconciler.ts';
import { serial } from '../../base/serial.ts';
import type { Finding } from '../../host/finding.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { OwnFile } from '../../host/own-files.ts';
import type { LoadBalancer, OwnerKey, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { StandingReason, Withheld } from '../announcer.ts';
import type { BgpAnnouncer, BgpPeer, BgpSettings, BgpStatus, VipAnnouncement, Worn } from '../bgp.ts';
import { anchorRoutes } from '../host-anchors.ts';
import { localRoutes } from '../local-addresses.ts';
import { Passing } from '../passing/passing.ts';
import { BirdDaemon } from './bird-daemon.ts';
import { bgpFamilies } from './bird-metrics.ts';
import { BirdMonitor } from './bird-monitor.ts';
import { BirdSocket } from './bird-socket.ts';
import { BirdText } from './bird-text.ts';
import { HostBfd } from './host-bfd.ts';
import { LocalRoutes } from './local-routes.ts';
import type { BirdOptions } from './options.ts';
import { type BirdPaths, birdPaths } from './paths.ts';
import { birdReadiness } from './readiness.ts';
import { UnreachedVips } from './unreached-vips.ts';
import { VipFiles } from './vip-files.ts';
import { VipWear } from './vip-wear.ts';

const BACKOFF = { firstMs: 100, mostMs: 5_000 } as const;
/** Files and routes that another process has changed are found after so many rounds of the monitor. */
const ROUNDS_OF_A_CHECK = 5;

export class BirdAnnouncer implements BgpAnnouncer {
  readonly ownFiles: readonly OwnFile[] = [];
  /** Which hosts of the setting `hosts` live. */
  readonly living: HostBfd;
  readonly #options: BirdOptions;
  readonly #paths: BirdPaths;
  readonly #wear: VipWear;
  readonly #local: LocalRoutes;
  readonly #files: VipFiles;
  readonly #socket: BirdSocket;
  readonly #text: BirdText;
  readonly #daemon: BirdDaemon;
  readonly #monitor: BirdMonitor;
  readonly #reconciler: Reconciler;
  readonly #unreached: UnreachedVips;
  readonly #passing: Passing;
  readonly #fault = new Fault();
  #bgp: BgpSettings;
  #reasons: readonly StandingReason[] = [];
  #unready: readonly Finding[] = [];
  #rounds = 0;
  #isOpen = false;
  /** As the last problemsOf() had it. */
  #isElsewhere = false;
  #hadRoutes = false;

  constructor(options: BirdOptions) {
    const { settings, vips, peers, log } = options;
    const paths = birdPaths(settings.runtimeDir);
    this.#paths = paths;
    const turns = serial();
    const bgp = (): BgpSettings => this.#bgp;
    this.#options = options;
    this.#bgp = settings.bgp;
    this.#wear = new VipWear({
      serves: vips.serves,
      now: () => performance.now(),
      isRouted: vips.isRouted,
      whyNot: (address, owners) => this.#whyWithheld(address, owners),
    });
    this.#local = new LocalRoutes({
      netns: settings.netns,
      file: paths.local,
      read: localRoutes(settings.netns),
    });
    this.#socket = new BirdSocket(paths.socket, { isRestricted: false });
    this.#files = new VipFiles(paths, this.#socket, vips.routeSpec);
    this.#text = new BirdText({ paths, bgp, group: options.group, peers, now: () => performance.now() });
    this.#daemon = new BirdDaemon({
      settings,
      paths,
      text: this.#text,
      socket: this.#socket,
      turns,
      hooks: {
        onServes: async () => {
          this.#files.processChanged();
          void this.#reconciler.reconcile();
          this.#monitor.routesChanged();
        },
        onFault: (reason) => {
          if (reason === '') log.info('BIRD runs with the settings again');
          else log.error('BIRD does not run as it should', { error: reason });
        },
      },
      log,
    });
    this.#reconciler = new Reconciler({
      step: () => turns.run(() => this.#step()),
      onDone: () => {
        if (this.#fault.clear()) log.info('The routes of VIPs are up to date again');
      },
      onFailed: (error) => {
        const message = messageOf(error);
        if (this.#fault.set(message)) log.error('Cannot announce VIPs', { error: message });
      },
      spacingMs: 0,
      backoff: BACKOFF,
    });
    this.living = new HostBfd({
      socket: new BirdSocket(paths.socket, { isRestricted: true }),
      group: options.group,
      pid: () => this.#daemon.pid,
      blind: options.hosts.blind,
      onBlind: options.hosts.onBlind,
    });
    this.#passing = new Passing({
      settings: { nft: settings.nft, netns: settings.netns, table: settings.passingTable },
      file: paths.passing,
      group: options.group,
      peers: () => this.#bgp.peers,
      living: {
        living: () => this.living.living(),
        follow: (onChange) => this.living.follow(onChange),
        differing: options.hosts.differing,
      },
      onSettled: () => void this.#apply(),
      log,
    });
    this.#monitor = new BirdMonitor({
      socket: new BirdSocket(paths.socket, { isRestricted: true }),
      bgp,
      whyNot: (peer) => this.#text.why(peer),
      pid: () => this.#daemon.pid,
      onRound: () => this.#check(),
      log,
    });
    this.#unreached = new UnreachedVips({
      isReached: (address) => this.#monitor.isReached(address),
      now: () => performance.now(),
    });
  }

  /**
   * Adopts the BIRD that runs, or starts one. VIPs that an agent before this one has announced stay announced. Never
   * rejects: an error is a fault, and is retried in the background.
   */
  async start(): Promise<void> {
    const before = await this.#files.read();
    this.#hadRoutes = [...before.values()].includes('first');
    this.#wear.adopt(before);
    this.#isOpen = true;
    this.follow(this.#options.desired.keys(), this.#options.desired);
    this.#wear.forgetOthers();
    this.changed(this.#options.desired.keys());
    await makeFolder(this.#paths.directory, 0o700).catch(() => undefined);
    await this.#passing.start();
    await this.#reconciler.reconcile();
    await this.#daemon.keep();
    this.#monitor.start();
    this.living.start();
    this.#unready = (await birdReadiness(this.#options.settings)).filter(({ ok }) => !ok);
    for (const { what, detail } of this.#unready)
      this.#options.log.warn('This host is not ready for BGP', { what, detail });
  }

  /** The pools have changed, and with them perhaps the filters. */
  poolsChanged(bgp: BgpSettings): void {
    if (!this.#isOpen) {
      this.#bgp = bgp;
      return;
    }
    this.follow(this.#options.desired.keys(), this.#options.desired);
    this.changed(this.#options.desired.keys());
    void this.#apply();
    this.configure(bgp);
  }

  /** Passwords may have changed, or all objects have been read. */
  passwordsChanged(): void {
    if (this.#isOpen) void this.#daemon.keep();
  }

  /** New settings, of `hosts` too. Those that BIRD refuses, or that end a session, are a fault and change nothing. */
  configure(bgp: BgpSettings): void {
    this.#bgp = bgp;
    if (!this.#isOpen) return;
    void this.#daemon.keep();
    void this.#passing.renew();
    void this.#apply();
  }

  follow(keys: Iterable<OwnerKey>, loadBalancers: ReadonlyMap<OwnerKey, LoadBalancer>): void {
    let hasChanged = false;
    for (const key of keys) hasChanged = this.#wear.follow(key, loadBalancers.get(key)) || hasChanged;
    if (hasChanged) void this.#apply();
  }

  /** What these load balancers serve may have changed. */
  changed(keys: Iterable<OwnerKey>): void {
    const hasChanged = this.#wear.look(keys);
    // Whether there are members changes no route's worth, but whether there is one.
    if (hasChanged || this.#bgp.withoutMembers === 'withdraw') void this.#apply();
  }

  /** The caller decides on hysteresis. Resolves when BIRD has taken it up, or with a fault. */
  standing(reasons: readonly StandingReason[]): Promise<void> {
    this.#reasons = [...reasons];
    return this.#apply();
  }

  /** What an agent before this one has announced, or this one, so that a restart does not lower this host. */
  get isActive(): boolean {
    this.#hadRoutes ||= [...this.#files.routes.values()].includes('first');
    return this.#hadRoutes;
  }

  withheld(address: string): Withheld {
    if (this.#daemon.pid === 0) return 'stopped';
    if (this.#monitor.haveRoute(address).peers.length > 0) return '';
    if (!this.#wear.has(address)) return 'unwanted';
    return this.#monitor.facts.size === 0 ? 'unknown' : 'fault';
  }

  announced(address: string): string {
    if (!this.#options.vips.isRouted(address)) return '';
    const { peers, since } = this.#monitor.haveRoute(address);
    const whyNot = this.#wear.whyNotFirst(address, this.#lowered);
    if (peers.length === 0) return `${address} is not announced: ${this.#whyNot(address)}`;
    const time = since === 0 ? '' : ` since ${new Date(since).toISOString().replace('.000', '')}`;
    const last = whyNot === '' ? '' : `, as the last choice: ${whyNot}`;
    const all = this.#bgp.peers.length;
    return `${address} is announced to ${peers.length} of ${all} ${all === 1 ? 'router' : 'routers'}${time}${last}`;
  }

  /** How many routers have the routes of this host as they are now, of how many; waits a moment for the last change. */
  async told(): Promise<{ readonly count: number; readonly of: number; readonly why: string }> {
    await this.#monitor.look();
    const { sessions } = this.#monitor;
    const whys = sessions.filter(({ why }) => why !== '').map(({ peer, why }) => `${peer}: ${why}`);
    return { count: sessions.length - whys.length, of: sessions.length, why: whys.join('; ') };
  }

  /** A router has every VIP of this host. */
  get announcesAll(): boolean {
    const { routes } = this.#files;
    for (const address of this.#wear.addresses())
      if (!routes.has(address) || !this.#monitor.isReached(address)) return false;
    return true;
  }

  /** How it is announced, for other hosts. */
  seen(address: string): VipAnnouncement {
    const { peers } = this.#monitor.haveRoute(address);
    const why = peers.length > 0 ? this.#wear.whyNotFirst(address, this.#lowered) : this.#whyNot(address);
    const isRouted = this.#options.vips.isRouted(address);
    return {
      address,
      worn: peers.length === 0 ? 'none' : (this.#files.routes.get(address) ?? 'none'),
      count: peers.length,
      of: this.#bgp.peers.length,
      routers: short(peers.join(', '), 100),
      why: isRouted ? short(why, 160) : 'its pool is announced by VRRP',
    };
  }

  /** How the session with a peer is, for its object; undefined while it is being established. */
  sessionOf(peer: BgpPeer): { readonly state: 'Up' | 'Down'; readonly message: string } | undefined {
    const why = this.#monitor.whyNot(peer) || this.#text.why(peer.name);
    if (this.#monitor.isEstablished(peer)) return { state: 'Up', message: short(why, 400) };
    return this.#monitor.isLate(peer) ? { state: 'Down', message: short(why, 400) } : undefined;
  }

  /** Every VIP that this host may announce: which routers have it, and why none has it, '' if one has. */
  *announcements(): Generator<{
    readonly address: string;
    readonly peers: readonly string[];
    readonly why: string;
  }> {
    for (const address of this.#wear.addresses()) {
      const { peers } = this.#monitor.haveRoute(address);
      // One that is withheld on purpose or is just being announced is none of these.
      if (peers.length === 0 && !this.#unreached.has(address)) continue;
      yield { address, peers, why: peers.length > 0 ? '' : short(this.#whyNot(address), 160) };
    }
  }

  /** The text stays the same while sessions come and go: it gets into conditions and Events. */
  problemsOf({ key, vips, listeners }: Pick<LoadBalancer, 'key' | 'vips' | 'listeners'>): readonly Problem[] {
    const object = objectOf(key);
    if (this.#isElsewhere) return [];
    const unreached = vips.filter(({ address }) => this.#unreached.has(address));
    return unreached.flatMap(({ address }) =>
      listeners
        .filter(({ addresses }) => addresses.includes(address))
        .map(({ protocol, port }) => ({
          object,
          reason: 'AddressNotAnnounced',
          message: `No router has a route to ${address} by this host: "headgate status" says why`,
          port: { protocol, port },
        })),
    );
  }

  /** What is wrong with the sessions with routers. */
  problems(): readonly Problem[] {
    if (!this.#isOpen) return [];
    const ofPeers = [...this.#options.peers.problems(), ...this.#kept()];
    return [...this.#monitor.problems(), ...this.#passing.problems(), ...ofPeers];
  }

  status(): BgpStatus {
    const vips = { first: 0, last: 0, withheld: 0 };
    const routes = this.#files.routes;
    for (const address of this.#wear.addresses()) vips[routes.get(address) ?? 'withheld']++;
    return {
      version: this.#daemon.version,
      pid: this.#daemon.pid,
      asn: this.#bgp.asn,
      sessions: this.#monitor.sessions,
      vips,
      unreached: this.#unreached.size,
      passing: this.#passing.status(),
      lowered: this.#lowered,
      unready: this.#unready.map(({ what, detail }) => ({ what, detail })),
      fault: this.#daemon.fault || this.#fault.text,
    };
  }

  families(): readonly MetricFamily[] {
    const families = bgpFamilies({
      bgp: this.#bgp,
      facts: this.#monitor.facts,
      status: this.status(),
      losses: this.#monitor.losses,
      routers: [...this.#files.routes.keys()].map((each) => [
        each,
        this.#monitor.haveRoute(each).peers.length,
      ]),
      now: Date.now(),
    });
    return [...families, ...this.#passing.families()];
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.#monitor.close();
    await this.#passing.close();
    this.living.close();
    await this.#reconciler.close();
    await this.#daemon.close();
    this.#socket.close();
  }

  /** After close(): stops a BIRD that was started here and makes no VIP local any more, for demonstrations and tests. */
  async stop(): Promise<void> {
    await this.#daemon.stop();
    await this.#passing.stop();
    await this.#local.keepOnly(new Set());
  }

  /** Peers whose sessions are up with their last good version. */
  #kept(): readonly Problem[] {
    return this.#bgp.peers.flatMap((peer): readonly Problem[] => {
      const why = this.#text.why(peer.name);
      if (why === '' || !this.#monitor.isEstablished(peer)) return [];
      const message = `The peer ${peer.name} continues with its last version: ${why}`;
      return [{ object: `BGP peer ${peer.name}`, reason: 'InvalidObject', message }];
    });
  }

  /** Why no router has a route to it. */
  #whyNot(address: string): string {
    const whyNot = this.#wear.whyNotFirst(address, this.#lowered);
    const sessions = this.#monitor.sessions
      .filter(({ why }) => why !== '')
      .map(({ peer, why }) => `${peer}: ${why}`);
    if (this.#bgp.peers.length === 0)
      return 'this host has no peer: name routers in the setting bgp, or by a BGPPeer that selects it';
    const reasons = whyNot === '' || this.#files.routes.has(address) ? sessions : [];
    return [whyNot, ...reasons].filter(Boolean).join('; ') || 'no router takes routes of its IP version yet';
  }

  #whyWithheld(address: string, owners: Iterable<OwnerKey>): string {
    const { routeSpec, hasMembers } = this.#options.vips;
    const whyNot = routeSpec(address)?.whyNot ?? '';
    if (whyNot !== '' || this.#bgp.withoutMembers === 'announce') return whyNot;
    for (const owner of owners) if (hasMembers(owner)) return '';
    return 'none of its members can be reached, and "withoutMembers" of the setting bgp is "withdraw"';
  }

  /** A host that joins is the last choice until it can pass packets of others' connections on. */
  get #lowered(): readonly StandingReason[] {
    const isReady = this.#hadRoutes || this.#passing.isSettled || this.#reasons.includes('catching-up');
    return isReady ? this.#reasons : [...this.#reasons, 'catching-up'];
  }

  #apply(): Promise<void> {
    return this.#isOpen ? this.#reconciler.reconcile() : Promise.resolve();
  }

  /** A route of a VIP comes after its local route and goes before it. */
  async #step(): Promise<boolean> {
    const anchors = anchorRoutes(this.#options.group(), this.#passing.isSettled || this.#hadRoutes);
    const addresses = new Set([...this.#wear.addresses(), ...anchors.map(({ address }) => address)]);
    if (!existsSync(this.#paths.directory)) await makeFolder(this.#paths.directory, 0o700);
    await this.#local.add(addresses);
    await this.#passing.setVips(addresses);
    this.#files.set(new Map<string, Worn>(this.#wear.routes(this.#lowered)), anchors);
    if (await this.#files.apply(this.#daemon.pid !== 0)) this.#monitor.routesChanged();
    await this.#local.keepOnly(addresses);
    return false;
  }

  #check(): void {
    if (!this.#isOpen) return;
    this.#passing.differingMayHaveChanged();
    const wasElsewhere = this.#isElsewhere;
    this.#isElsewhere = this.#options.hosts.isAnnouncedElsewhere();
    const news = this.#unreached.look(this.#files.routes);
    const changed = wasElsewhere === this.#isElsewhere ? news : [...news, ...this.#unreached.all()];
    if (changed.length > 0)
      this.#options.onChanged(new Set(changed.flatMap((each) => [...this.#wear.ownersOf(each)])));
    if (this.#text.retry((name) => this.#monitor.isEstablished({ name }))) void this.#daemon.keep();
    const isDue = ++this.#rounds % ROUNDS_OF_A_CHECK === 0;
    if (isDue) void this.#local.restore().catch((error) => this.#reconciler.fail(error));
    if (this.#wear.lookAgain() || isDue) void this.#reconciler.reconcile();
  }
}

/** For a report: what a router says may have any character. */
function short(text: string, most: number): string {
  const plain = text.replaceAll(/[^\x20-\x7e]/g, '?');
  return plain.length <= most ? plain : `${plain.slice(0, most - 4)} ...`;
}
