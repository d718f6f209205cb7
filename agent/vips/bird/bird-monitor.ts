// Asks BIRD each second, by a connection that may change nothing, for the sessions with routers and for the routes that each
// has: the only source of what is announced. Reports changes to the log and gives what is wrong in words.

import { Rounds } from '../../base/rounds.ts';
import type { Log } from '../../host/log.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { BgpPeer, BgpSession, BgpSettings } from '../bgp.ts';
import type { BirdSocket } from './bird-socket.ts';
import { protocolOf } from './render.ts';
import { bfdIn, isSameSession, type ProtocolFacts, routesIn, sessionsIn } from './session-facts.ts';
import { FULL_WORDS, isFull, isRefused, whyNotEstablished } from './session-words.ts';
import { type SignatureFaults, signatureFaults } from './signature-faults.ts';

export interface BirdMonitorOptions {
  /** Restricted. */
  readonly socket: BirdSocket;
  readonly bgp: () => BgpSettings;
  /** As of BirdText. */
  readonly whyNot: (peer: string) => string;
  /** 0 if BIRD does not run. */
  readonly pid: () => number;
  /** After each round. */
  readonly onRound: () => void;
  readonly log: Log;
}

const INTERVAL_MS = 1_000;
/** A session that is being established is no problem, unless it is refused. */
const PATIENCE_MS = 3_000;
/** A router that ends a session at its limit of routes establishes it again, and ends it again. */
const FULL_MEMORY_MS = 20_000;
/** A router that has another password tries again at least so often. */
const SIGNATURE_MEMORY_MS = 10_000;

const NO_FAULTS: SignatureFaults = { wrong: 0, missing: 0, unexpected: 0 };

export class BirdMonitor {
  readonly #options: BirdMonitorOptions;
  readonly #rounds: Rounds;
  #facts: ReadonlyMap<string, ProtocolFacts> = new Map();
  #bfd: ReadonlyMap<string, string> = new Map();
  /** Name of the protocol → the routes that the router has, and when each changed. */
  readonly #routes = new Map<string, ReadonlyMap<string, number>>();
  /** Name of the protocol → what its routes were read for. */
  readonly #readFor = new Map<string, string>();
  #changes = 0;
  /** The time of day beside the monotonic clock. */
  #clock = Date.now() - performance.now();
  #signatures = NO_FAULTS;
  #signature: { readonly kind: keyof SignatureFaults; readonly at: number } | undefined;
  /** Name of the protocol → since when it is not established, by performance.now(). */
  readonly #downSince = new Map<string, number>();
  /** Names of protocols whose router takes fewer routes, also while their sessions are established for a moment. */
  readonly #full = new Set<string>();
  /** Name of a peer → how often its session has ended. */
  readonly #losses = new Map<string, number>();
  /** Name of the protocol → what the log has last. */
  readonly #logged = new Map<string, string>();

  constructor(options: BirdMonitorOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => INTERVAL_MS,
      work: () => this.#round(),
      onFailed: () => this.#forget(),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
    this.#options.socket.close();
  }

  /** BIRD has other routes than before: reads them again now. */
  routesChanged(): void {
    this.#changes++;
    void this.#rounds.now();
  }

  /** Asks BIRD now, after a round that is under way. Never rejects. */
  async look(): Promise<void> {
    await this.#rounds.now();
    await this.#rounds.now();
  }

  get sessions(): readonly BgpSession[] {
    return this.#options.bgp().peers.map((peer) => this.#session(peer));
  }

  /** A router has a route to this address. */
  isReached(address: string): boolean {
    for (const routes of this.#routes.values()) if (routes.has(address)) return true;
    return false;
  }

  isEstablished(peer: Pick<BgpPeer, 'name'>): boolean {
    return this.#facts.get(protocolOf(peer))?.state === 'Established';
  }

  /** It has not been established for longer than a session takes. */
  isLate(peer: Pick<BgpPeer, 'name'>): boolean {
    const since = this.#downSince.get(protocolOf(peer));
    return since !== undefined && performance.now() - since >= PATIENCE_MS;
  }

  /** '' if its session is established. */
  whyNot(peer: BgpPeer): string {
    return this.#why(peer);
  }

  /** How often sessions that were established have ended, by the name of the peer. */
  get losses(): ReadonlyMap<string, number> {
    return this.#losses;
  }

  /** The peers whose routers have a route to this address, and since when the last of them has it; 0 if unknown. */
  haveRoute(address: string): { readonly peers: readonly string[]; readonly since: number } {
    const peers: string[] = [];
    let since = 0;
    for (const peer of this.#options.bgp().peers) {
      const name = protocolOf(peer);
      const changed = this.#routes.get(name)?.get(address);
      if (changed === undefined) continue;
      peers.push(peer.name);
      since = Math.max(since, changed, this.#facts.get(name)?.since ?? 0);
    }
    return { peers, since };
  }

  /** Sessions that are not established, and routers that do not get all routes. */
  problems(now = performance.now()): readonly Problem[] {
    const { bgp } = this.#options;
    return bgp().peers.flatMap((peer): readonly Problem[] => {
      const name = protocolOf(peer);
      const isLate = this.#isLate(name, now) || this.#isRefused(peer);
      const object = `BGP peer ${peer.name}`;
      const router = `${peer.name} (${peer.address})`;
      if (isLate)
        return [
          {
            object,
            reason: this.#full.has(name) ? 'BgpRoutesHeldBack' : 'BgpSessionDown',
            message: `The router ${router} gets no routes of this host: ${this.#why(peer)}`,
          },
        ];
      if (this.#full.has(name))
        return [
          {
            object,
            reason: 'BgpRoutesHeldBack',
            message: `The router ${router} ends each session: ${FULL_WORDS}`,
          },
        ];
      const { limited = [] } = this.#facts.get(name) ?? {};
      if (limited.length === 0) return [];
      const message = `The router ${router} does not get all routes of this host: there are more than "routeLimit" of the setting bgp, ${bgp().routeLimit}`;
      return [{ object, reason: 'BgpRoutesHeldBack', message }];
    });
  }

  /** By the name of the protocol. */
  get facts(): ReadonlyMap<string, ProtocolFacts> {
    return this.#facts;
  }

  async #round(): Promise<void> {
    const { socket, bgp, pid, onRound } = this.#options;
    if (pid() === 0) {
      this.#forget();
      onRound();
      return;
    }
    this.#follow(sessionsIn((await socket.ask('show protocols all')).lines));
    if (bgp().peers.some(({ bfd }) => bfd !== undefined))
      this.#bfd = bfdIn((await socket.ask('show bfd sessions')).lines);
    for (const peer of bgp().peers) await this.#readRoutes(protocolOf(peer));
    await this.#readSignatures(pid());
    this.#judge();
    onRound();
  }

  /** A session that is another than before has ended in between. */
  #follow(facts: ReadonlyMap<string, ProtocolFacts>): void {
    const clock = Date.now() - performance.now();
    const shiftMs = clock - this.#clock;
    this.#clock = clock;
    for (const peer of this.#options.bgp().peers) {
      const name = protocolOf(peer);
      const [before, now] = [this.#facts.get(name), facts.get(name)];
      const isSettled = now?.state === 'Established' && Date.now() - now.since > FULL_MEMORY_MS;
      if (isFull(now)) this.#full.add(name);
      else if (isSettled || now?.lastError.startsWith('Received:')) this.#full.delete(name);
      if (before?.state !== 'Established') continue;
      if (now?.state === 'Established' && isSameSession(before, now, shiftMs)) continue;
      this.#losses.set(peer.name, (this.#losses.get(peer.name) ?? 0) + 1);
    }
    this.#facts = facts;
  }

  async #readRoutes(name: string): Promise<void> {
    const facts = this.#facts.get(name);
    if (facts?.state !== 'Established') {
      this.#routes.delete(name);
      this.#readFor.delete(name);
      return;
    }
    const state = [this.#changes, facts.since, facts.exported.v4, facts.exported.v6].join();
    if (this.#readFor.get(name) === state) return;
    const { lines } = await this.#options.socket.ask(`show route export ${name}`);
    this.#routes.set(name, routesIn(lines));
    this.#readFor.set(name, state);
  }

  async #readSignatures(pid: number): Promise<void> {
    const before = this.#signatures;
    this.#signatures = await signatureFaults(pid);
    const kinds = ['wrong', 'missing', 'unexpected'] as const;
    const kind =
      before === NO_FAULTS ? undefined : kinds.find((each) => this.#signatures[each] > before[each]);
    if (kind !== undefined) this.#signature = { kind, at: performance.now() };
  }

  /** Without an answer nothing is known. */
  #forget(): void {
    this.#follow(new Map());
    this.#bfd = new Map();
    this.#routes.clear();
    this.#readFor.clear();
    this.#judge();
  }

  #judge(): void {
    const { bgp, log } = this.#options;
    for (const peer of bgp().peers) {
      const name = protocolOf(peer);
      const isUp = this.#facts.get(name)?.state === 'Established';
      if (isUp) this.#downSince.delete(name);
      else if (!this.#downSince.has(name)) this.#downSince.set(name, performance.now());
      const why = this.#why(peer);
      const isLate = this.#isLate(name) || this.#isRefused(peer);
      const before = this.#logged.get(name);
      const news = isUp ? 'up' : isLate ? why : before;
      if (news === before || news === undefined) continue;
      this.#logged.set(name, news);
      const fields = { peer: peer.name, address: peer.address };
      if (isUp) log.info('The session with a router is established', fields);
      else log.warn('The session with a router is not established', { ...fields, why });
    }
  }

  #session(peer: BgpPeer): BgpSession {
    const facts = this.#facts.get(protocolOf(peer));
    return {
      peer: peer.name,
      address: peer.address,
      asn: peer.asn,
      state: facts?.state ?? '',
      since: facts === undefined || facts.since === 0 ? '' : new Date(facts.since).toISOString(),
      why: this.#why(peer),
      routes: facts?.exported ?? { v4: 0, v6: 0 },
      bfd: peer.bfd === undefined ? '' : (this.#bfd.get(peer.address) ?? 'Down'),
    };
  }

  #isLate(name: string, now = performance.now()): boolean {
    const down = this.#downSince.get(name);
    return down !== undefined && now - down >= PATIENCE_MS;
  }

  #isRefused(peer: BgpPeer): boolean {
    return isRefused(peer, this.#facts.get(protocolOf(peer)), this.#recentSignature);
  }

  get #recentSignature(): keyof SignatureFaults | '' {
    const { kind = '', at = 0 } = this.#signature ?? {};
    return performance.now() - at < SIGNATURE_MEMORY_MS ? kind : '';
  }

  #why(peer: BgpPeer): string {
    const { bgp, pid, whyNot } = this.#options;
    if (pid() === 0) return 'BIRD does not run';
    const signature = this.#recentSignature;
    const name = protocolOf(peer);
    const facts = this.#facts.get(name);
    const own = facts?.state === 'Established' ? '' : whyNot(peer.name);
    if (own !== '') return own;
    if (signature === '' && facts?.state !== 'Established' && this.#full.has(name)) return FULL_WORDS;
    const hasBfd = this.#bfd.get(peer.address) === 'Up';
    return whyNotEstablished(peer, facts, bgp().asn, { signature, isLate: this.#isLate(name), hasBfd });
  }
}
