// Checks the members of listeners whose monitor is `udp`, each at the interval of its monitor. Owns timers; a probe owns its
// socket.

import { type Clock, systemClock } from '../../base/clock.ts';
import { limited } from '../../base/limited.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Listener, LoadBalancer, OwnerKey } from '../../model/load-balancer.ts';
import { isForKernel } from '../rules/kernel-listener.ts';
import { firstCheck, nextCheck, type UdpCheck } from './udp-check.ts';
import { probeUdp } from './udp-probe.ts';

export interface UdpChecksOptions {
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** Whether the member was down when it was checked last, perhaps by an agent before this one. */
  readonly wasDown: (listener: Listener, member: string) => boolean;
  /** Members that have refused packets of clients: milliseconds since the last one, by member. Never rejects. */
  readonly refusals: () => Promise<ReadonlyMap<string, number>>;
  /** Called after each round of checks of a listener; by member. */
  readonly onChecked: (listener: Listener, checks: ReadonlyMap<string, UdpCheck>) => void;
  readonly probe?: typeof probeUdp;
  readonly clock?: Clock;
}

type Checks = ReadonlyMap<string, UdpCheck>;

/** The most of all listeners together; further probes wait. */
const MAX_SOCKETS = 500;
/** For so long the refusals of all members are read only once. */
const REFUSALS_AGE_MS = 500;
const NO_ROUNDS: ReadonlyMap<string, Rounds> = new Map();
const NO_REFUSALS: ReadonlyMap<string, number> = new Map();

export class UdpChecks {
  readonly #options: UdpChecksOptions;
  readonly #clock: Clock;
  readonly #inTurn = limited(MAX_SOCKETS);
  /** By the key of the load balancer, then by listener. */
  readonly #rounds = new Map<OwnerKey, ReadonlyMap<string, Rounds>>();
  #refusals = { readAt: Number.NEGATIVE_INFINITY, read: Promise.resolve(NO_REFUSALS) };
  #isClosed = false;

  constructor(options: UdpChecksOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** These load balancers have changed. */
  changed(keys: Iterable<OwnerKey>): void {
    for (const key of keys) {
      const before = this.#rounds.get(key) ?? NO_ROUNDS;
      const listeners = this.#options.desired.get(key)?.listeners.filter(isCheckedByUdp) ?? [];
      const after = new Map(listeners.map(({ name }) => [name, before.get(name) ?? this.#begin(key, name)]));
      for (const [name, rounds] of before) if (!after.has(name)) rounds.close();
      if (after.size === 0) this.#rounds.delete(key);
      else this.#rounds.set(key, after);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const ofKey of this.#rounds.values()) for (const rounds of ofKey.values()) rounds.close();
  }

  #begin(key: OwnerKey, name: string): Rounds {
    const { desired, onChecked } = this.#options;
    const listenerNow = (): Listener | undefined =>
      desired.get(key)?.listeners.find((each) => each.name === name && isCheckedByUdp(each));
    let checks: Checks = new Map();
    let beganAt = this.#clock.monotonic();
    const rounds = new Rounds({
      intervalMs: () => {
        const interval = listenerNow()?.pool.monitor?.interval ?? 0;
        return Math.max(0, interval - (this.#clock.monotonic() - beganAt));
      },
      work: async () => {
        beganAt = this.#clock.monotonic();
        const listener = listenerNow();
        if (listener === undefined) return;
        checks = await this.#check(listener, checks);
        if (!this.#isClosed) onChecked(listener, checks);
      },
      // A probe does not throw.
      onFailed: () => undefined,
      clock: this.#clock,
    });
    rounds.start();
    return rounds;
  }

  async #check(listener: Listener, before: Checks): Promise<Checks> {
    const { wasDown, probe = probeUdp } = this.#options;
    const { monitor, members } = listener.pool;
    if (monitor === undefined) return before;
    const checks = members.map(async ({ name, address, port }): Promise<[string, UdpCheck]> => {
      const to = { address, port: monitor.port || port };
      const answer = await this.#inTurn(() => probe(to, monitor.timeout));
      const at = this.#clock.monotonic();
      const sinceRefusalMs = (await this.#refusalsAt(at)).get(name) ?? Number.POSITIVE_INFINITY;
      const known = before.get(name) ?? firstCheck(wasDown(listener, name));
      return [name, nextCheck(known, { answer, at, sinceRefusalMs }, monitor)];
    });
    return new Map(await Promise.all(checks));
  }

  #refusalsAt(now: number): Promise<ReadonlyMap<string, number>> {
    if (now - this.#refusals.readAt > REFUSALS_AGE_MS)
      this.#refusals = { readAt: now, read: this.#options.refusals() };
    return this.#refusals.read;
  }
}

export function isCheckedByUdp(listener: Listener): boolean {
  return listener.pool.monitor?.type === 'udp' && isForKernel(listener);
}
