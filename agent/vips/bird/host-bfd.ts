// Which other hosts live: asks BIRD, by a connection that may change nothing, for its BFD sessions with their back addresses,
// many times a second, because packets go to a dead host until its session is noticed as down.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Rounds } from '../../base/rounds.ts';
import type { HostGroup, LivingHosts } from '../../model/host-group.ts';
import type { BfdSettings } from '../bgp.ts';
import type { BirdSocket } from './bird-socket.ts';
import { type BfdFacts, bfdSessionsIn } from './session-facts.ts';

export interface HostBfdOptions {
  /** Restricted, and of its own, so that no long list delays an answer. */
  readonly socket: Pick<BirdSocket, 'ask' | 'close'>;
  /** undefined if this host knows no other. */
  readonly group: () => HostGroup | undefined;
  /** 0 if BIRD does not run. */
  readonly pid: () => number;
  /** Hosts that say that their own BIRD does not answer: they live as long as they say so, although BFD with them is down. */
  readonly blind: () => ReadonlySet<string>;
  /** isBlind has changed. */
  readonly onBlind: () => void;
  readonly clock?: Clock;
}

/** Between the hosts. */
export const HOST_BFD: BfdSettings = { interval: 50, multiplier: 3 };
/** An answer takes BIRD a tenth of a millisecond. */
const POLL_INTERVAL_MS = 40;
/** BFD of the other hosts finds a BIRD that does not answer after 100 ms at the earliest: they are told before. */
const ANSWER_TIMEOUT_MS = 60;
/** Hosts in a group without a back network are not asked for. */
const IDLE_INTERVAL_MS = 1_000;
/** Sessions of a BIRD that has just started come up within this time: until then the former ones count. */
const START_MS = 3_000;

export class HostBfd implements LivingHosts {
  readonly #options: HostBfdOptions;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  readonly #followers = new Set<() => void>();
  /** The other hosts that live; undefined: not known yet, so that none counts as dead. */
  #living: ReadonlySet<string> | undefined;
  /** By the clock: BIRD has answered without a failure since. undefined: it does not answer. */
  #answersSince: number | undefined;
  #isBlind = false;

  constructor(options: HostBfdOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#rounds = new Rounds({
      intervalMs: () => (watched(options.group()).length > 0 ? POLL_INTERVAL_MS : IDLE_INTERVAL_MS),
      work: () => this.#look(),
      // Without an answer nothing is known: what was known stays.
      onFailed: () => this.#lost(),
      clock: this.#clock,
    });
  }

  living(): ReadonlySet<string> {
    const group = this.#options.group();
    if (group === undefined) return new Set();
    return new Set([group.self.name, ...(this.#living ?? namesOf(watched(group)))]);
  }

  /** BIRD of this host does not answer, or has just started: other hosts may miss its BFD although this host lives. */
  get isBlind(): boolean {
    return this.#isBlind;
  }

  /** BIRD has said which hosts live, and answers. */
  get isKnown(): boolean {
    return this.#living !== undefined && !this.#isBlind;
  }

  follow(onChange: () => void): () => void {
    this.#followers.add(onChange);
    return () => this.#followers.delete(onChange);
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
    this.#options.socket.close();
  }

  async #look(): Promise<void> {
    const { socket, group, pid, blind } = this.#options;
    const hosts = watched(group());
    if (hosts.length === 0) {
      this.#put(new Set());
      return;
    }
    if (pid() === 0) {
      this.#lost();
      return;
    }
    const cancel = this.#clock.after(ANSWER_TIMEOUT_MS, () => this.#lost());
    const { lines } = await socket.ask('show bfd sessions').finally(cancel);
    const now = this.#clock.monotonic();
    this.#answersSince ??= now;
    const isStarting = now < this.#answersSince + START_MS;
    this.#setBlind(isStarting);
    const sessions = bfdSessionsIn(lines);
    const blindHosts = blind();
    const before = this.#living ?? namesOf(hosts);
    // A session that was down before this BIRD or this agent began is no news.
    const isNew = ({ since }: BfdFacts): boolean => this.#clock.wall() - since < START_MS;
    const lives = ({ name, address }: Watched): boolean => {
      const session = sessions.get(address);
      if (session?.state === 'Up') return true;
      const isOpen = isStarting && (session === undefined || isNew(session));
      return before.has(name) && (isOpen || blindHosts.has(name));
    };
    this.#put(new Set(hosts.filter(lives).map(({ name }) => name)));
  }

  /** BIRD does not answer. */
  #lost(): void {
    this.#answersSince = undefined;
    this.#setBlind(true);
  }

  #setBlind(isBlind: boolean): void {
    if (isBlind === this.#isBlind) return;
    this.#isBlind = isBlind;
    this.#options.onBlind();
  }

  #put(living: ReadonlySet<string>): void {
    const before = this.#living ?? namesOf(watched(this.#options.group()));
    this.#living = living;
    if (before.size === living.size && [...living].every((name) => before.has(name))) return;
    for (const follower of this.#followers) follower();
  }
}

export interface Watched {
  readonly name: string;
  readonly address: string;
  /** This host's address of the session. */
  readonly local: string;
}

function namesOf(hosts: readonly Watched[]): ReadonlySet<string> {
  return new Set(hosts.map(({ name }) => name));
}

/** The other hosts of a group and the addresses of the BFD sessions with them; none without a back network. */
export function watched(group: HostGroup | undefined): readonly Watched[] {
  const [local] = group?.self.back ?? [];
  if (group === undefined || local === undefined) return [];
  return group.hosts.flatMap(({ name, back: [address] }) =>
    name === group.self.name || address === undefined ? [] : [{ name, address, local }],
  );
}
