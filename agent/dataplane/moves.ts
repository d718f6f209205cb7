// The moves of load balancers from the landing to the main dataplane: both listen until the main one is proved to serve, then
// the landing lets go. No connection fails, health checks start with the landing's results, and clients keep their members.

import { type Clock, passed } from '../base/clock.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { Dataplane } from './dataplane.ts';
import type { DataplaneFacts, Plan } from './forwarder.ts';
import type { Placements } from './placements.ts';

/** A client with session affinity. */
export interface AffinityClient {
  readonly listener: string;
  readonly address: string;
  /** The id of its member. */
  readonly memberId: number;
}

/** What both dataplanes can do besides. */
export interface MovingDataplane<S> extends Dataplane<Plan, S> {
  /** The listeners that its engine starts with, also while it does not run. */
  keptListeners(): Promise<readonly string[]>;
  /** The listeners of these load balancers take no more connections until admit(); those that are open continue. */
  withdraw(keys: Iterable<string>): Promise<void>;
  /** They take connections again from the next plan on. */
  admit(keys: Iterable<string>): void;
}

export interface MainDataplane<S> extends MovingDataplane<S> {
  /** These clients have these members from now on. */
  remember(clients: readonly AffinityClient[]): Promise<void>;
}

export interface LandingDataplane<S> extends MovingDataplane<S> {
  /** Its process is being started, one that answers is being adopted, or a reload is to bring the next worker. */
  readonly isStarting: boolean;
  /** Ends its process if that does not answer any more, so that the main dataplane can have its addresses. */
  endHung(): Promise<void>;
  /** The clients of these load balancers. */
  affinity(keys: Iterable<string>): Promise<readonly AffinityClient[]>;
}

export interface MovesOptions {
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly placements: Placements;
  readonly main: Pick<DataplaneFacts, 'served' | 'members'> &
    Pick<MainDataplane<never>, 'continues' | 'remember' | 'admit'>;
  readonly landing: Pick<LandingDataplane<never>, 'serves' | 'withdraw' | 'affinity'>;
  readonly replan: (keys: Iterable<string>) => void;
  readonly clock: Clock;
}

/** A move waits for the main dataplane's own results of health checks, but not longer. */
const MOST_WAIT_FOR_CHECKS_MS = 10_000;
/** From the end of new connections to the landing until its sockets are closed: those that wait in them are accepted. */
const WITHDRAWAL_MS = 100;
/**
 * The same for listeners that HAProxy reaches by a socket of its own, which ends with them: a client has so long to send what is
 * led there, its first message of TLS to a dispatcher (5 s, `inspect-delay`) or a request that an authorization server lets in.
 */
const LEADING_MS = 5_500;

const NONE: readonly never[] = [];

export class Moves {
  readonly #options: MovesOptions;
  /** When the keys began to move. */
  readonly #since = new Map<string, number>();
  /** Moving keys whose clients the main dataplane knows. */
  readonly #introduced = new Set<string>();
  /** When the landing ceased to take connections of a moving key. */
  readonly #withdrawnAt = new Map<string, number>();

  constructor(options: MovesOptions) {
    this.#options = options;
  }

  /** From now on the main dataplane serves those of the landing as well. */
  begin(keys: readonly string[]): void {
    const { placements, main, replan, clock } = this.#options;
    const moving = keys.filter((key) => placements.of(key) === 'landing');
    if (moving.length === 0) return;
    for (const key of moving) {
      placements.set(key, 'moving');
      this.#since.set(key, clock.monotonic());
    }
    main.admit(moving);
    replan(moving);
  }

  /** The main dataplane takes connections of these: it must know the clients of the landing. Returns at once. */
  introduce(keys: readonly string[]): void {
    const moving = keys.filter((key) => this.#since.has(key) && !this.#introduced.has(key));
    for (const key of moving) this.#introduced.add(key);
    if (moving.length > 0) void this.#introduce(moving);
  }

  /** Ends the moves of those that the main dataplane serves. */
  async end(keys: readonly string[]): Promise<void> {
    const { replan } = this.#options;
    const moved = keys.filter((key) => this.#isMoved(key));
    if (moved.length === 0) return;
    await this.#withdraw(moved.filter((key) => !this.#withdrawnAt.has(key)));
    const ended = moved.filter((key) => !this.#leadsOn(key));
    for (const key of ended) this.forget(key);
    if (ended.length > 0) replan(ended);
  }

  async #withdraw(keys: readonly string[]): Promise<void> {
    const { landing, clock } = this.#options;
    if (keys.length === 0) return;
    // Clients that have come since the first time.
    await this.#introduce(keys);
    // Without an answer there is no worker that could take connections.
    await landing.withdraw(keys).catch(() => undefined);
    for (const key of keys) this.#withdrawnAt.set(key, clock.monotonic());
    await passed(clock, WITHDRAWAL_MS);
  }

  /** It is no longer in the landing. */
  forget(key: string): void {
    this.#since.delete(key);
    this.#introduced.delete(key);
    this.#withdrawnAt.delete(key);
    this.#options.placements.set(key, 'main');
  }

  /** The main dataplane serves it, also after a reload that is under way, and knows which members are down. */
  #isMoved(key: string): boolean {
    const { desired, placements, main, landing, clock } = this.#options;
    const all = [key, ...placements.poolsOf(key)];
    if (placements.of(key) !== 'moving' || all.some((each) => main.served(each) === 'pending')) return false;
    const served = (desired.get(key)?.listeners ?? NONE).filter(({ name }) => landing.serves(name));
    if (!served.every(({ name }) => main.continues(name))) return false;
    const listeners = all
      .flatMap((each) => desired.get(each)?.listeners ?? NONE)
      .filter(({ pool }) => pool.monitor !== undefined);
    const isKnown = listeners.every(({ name }) =>
      [...main.members(name).values()].every(({ isDown }) => isDown !== undefined),
    );
    return isKnown || clock.monotonic() - (this.#since.get(key) ?? 0) > MOST_WAIT_FOR_CHECKS_MS;
  }

  /** A client that the landing accepted may still have to be led on. */
  #leadsOn(key: string): boolean {
    const { desired, clock } = this.#options;
    if (clock.monotonic() - (this.#withdrawnAt.get(key) ?? 0) >= LEADING_MS) return false;
    return (desired.get(key)?.listeners ?? NONE).some(
      ({ dispatch, asksServers, replacesErrors }) => dispatch ?? asksServers ?? replacesErrors,
    );
  }

  /** Without an answer a client gets the member that the hash chooses. */
  async #introduce(keys: readonly string[]): Promise<void> {
    const { placements, main, landing } = this.#options;
    // The main dataplane has clients of its own of a pool that both serve.
    const pools = keys
      .flatMap((key) => placements.poolsOf(key))
      .filter((pool) => placements.of(pool) === 'moving');
    try {
      await main.remember(await landing.affinity(new Set([...keys, ...pools])));
    } catch {
      // One of the two is away.
    }
  }
}
