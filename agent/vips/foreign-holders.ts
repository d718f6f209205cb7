// Finds foreign holders, machines outside the pair that have a VIP: asks the network for each VIP that this host does not hold,
// a few at a time, and listens for answers with another Ethernet address than those of this host and its peers. A host that
// holds a VIP only listens. Nothing is done against such a machine.
// Why: docs/design/decisions/0084-foreign-holders-by-nftables.md

import { type AddressSet, addressesOf, hasAddress } from '../base/address-set.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { Fault } from '../base/fault.ts';
import { familyOf } from '../base/ip.ts';
import { Rounds } from '../base/rounds.ts';
import { Slice } from '../base/slice.ts';
import type { Log } from '../host/log.ts';
import type { LoadBalancer, OwnerKey, Problem } from '../model/load-balancer.ts';
import { objectOf } from '../model/names.ts';
import type { AddressAnswers, Answer } from './address-answers.ts';

export interface ForeignHoldersOptions {
  readonly desired: ReadonlyMap<OwnerKey, Pick<LoadBalancer, 'vips'>>;
  /** The interface of the VIPs, and the addresses of the other hosts of the pair on it. */
  readonly place: () => { readonly interface: string; readonly peers: readonly string[] };
  /** This host has the address now. */
  readonly holds: (address: string) => boolean;
  readonly network: Pick<
    AddressAnswers,
    'make' | 'remove' | 'watch' | 'ask' | 'answers' | 'neighbour' | 'link'
  >;
  /** Load balancers with an address that another machine has, or no longer has. */
  readonly onChanged: (keys: ReadonlySet<OwnerKey>) => void;
  readonly log: Log;
  readonly clock?: Clock;
}

const INTERVAL_MS = 10_000;
/** Two a second: 1,000 VIPs take eight minutes. */
const MAX_ASKED = 20;
/** From one question for an address to the next. */
const ASK_INTERVAL_MS = 300_000;
/** The same for an address that another machine has; answers are remembered for longer. */
const SHORT_ASK_INTERVAL_MS = 20_000;
/** In a message. */
const MAX_NAMED = 3;
/** The most of its interfaces, one after the other. */
const MAX_ETHERS_OF_PEER = 16;

export class ForeignHolders {
  readonly #options: ForeignHoldersOptions;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  readonly #failure = new Fault();
  /** The interface that the tables were made for; '' before, and after a failure. */
  #device = '';
  #hasTables = false;
  /** Addresses whose answers are noted. */
  #watched = new Set<string>();
  /** Address → when it was asked for. */
  readonly #asked = new Map<string, number>();
  /** Peer → its Ethernet addresses, also those that it had before. */
  readonly #peers = new Map<string, Set<string>>();
  /** Ethernet addresses that were foreign in the last round: another one may be a new one of a peer. */
  #suspected: ReadonlySet<string> = new Set();
  /** Address → Ethernet address → when it was seen last. */
  #found = new Map<string, ReadonlyMap<string, number>>();

  constructor(options: ForeignHoldersOptions) {
    const { log, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#rounds = new Rounds({
      intervalMs: () => INTERVAL_MS,
      work: () => this.#round(),
      // What cannot be asked is not known, and nothing is said of it.
      onFailed: (error) => {
        this.#device = '';
        if (this.#failure.set(messageOf(error)))
          log.info('Cannot find out whether another machine has a VIP', { error: this.#failure.text });
      },
      clock,
    });
  }

  start(): void {
    this.#rounds.start();
  }

  /** Removes the rules. Never rejects. */
  async close(): Promise<void> {
    this.#rounds.close();
    if (this.#hasTables) await this.#options.network.remove().catch(() => undefined);
  }

  problemsOf({ key, vips }: Pick<LoadBalancer, 'key' | 'vips'>): readonly Problem[] {
    if (this.#found.size === 0) return [];
    return vips.flatMap(({ address }): readonly Problem[] => {
      const found = this.#found.get(address);
      if (found === undefined) return [];
      const all = [...found.keys()].sort();
      const more = all.length > MAX_NAMED ? ` and ${all.length - MAX_NAMED} more` : '';
      const named = all.slice(0, MAX_NAMED).join(', ') + more;
      const message = `${address} is also held by ${named}, which is neither this host nor its peer: clients reach the one or the other; find that machine by its Ethernet address, and remove the address there`;
      return [{ object: objectOf(key), reason: 'AddressConflict', message }];
    });
  }

  async #round(): Promise<void> {
    const { place, network, desired } = this.#options;
    const { interface: device, peers } = place();
    if (desired.size === 0) {
      if (this.#hasTables) await network.remove();
      this.#hasTables = false;
      this.#device = '';
      return;
    }
    const { ethers, networks } = await network.link(device);
    const usersOf = await this.#onLink(networks);
    await this.#watch(device, new Set([...usersOf.keys(), ...peers]));
    const answers = await network.answers();
    await this.#learnPeers(device, answers);
    const known = new Set([...ethers, ...[...this.#peers.values()].flatMap((each) => [...each])]);
    const foreign = answers.filter(({ address, ether }) => usersOf.has(address) && !known.has(ether));
    // A peer that has not been seen yet may be any of them.
    const isComplete = peers.every((peer) => this.#peers.has(peer));
    const isSure = ({ address, ether }: Answer): boolean =>
      this.#suspected.has(ether) || this.#found.get(address)?.has(ether) === true;
    const sure = isComplete ? foreign.filter(isSure) : [];
    this.#suspected = new Set(foreign.map(({ ether }) => ether));
    this.#keep(sure, known, usersOf);
    await this.#ask(device, usersOf);
    this.#failure.clear();
  }

  /** VIP → its users; a VIP of no network of the interface is not asked for, because a router might answer for all of these. */
  async #onLink(networks: readonly string[]): Promise<ReadonlyMap<string, readonly OwnerKey[]>> {
    const sets: Record<'v4' | 'v6', AddressSet> = {
      v4: addressesOf(networks, 'v4'),
      v6: addressesOf(networks, 'v6'),
    };
    const users = new Map<string, OwnerKey[]>();
    const slice = new Slice();
    for (const [key, { vips }] of this.#options.desired) {
      for (const { address } of vips) {
        const known = users.get(address);
        if (known !== undefined) known.push(key);
        else if (hasAddress(sets[familyOf(address)], address)) users.set(address, [key]);
      }
      if (slice.isOver) await slice.breathe();
    }
    return users;
  }

  /** What the kernel knows of a peer stays, because advertisements depend on it. */
  async #learnPeers(device: string, answers: readonly Answer[]): Promise<void> {
    const { place, network } = this.#options;
    for (const peer of place().peers) {
      const noted = answers.filter(({ address }) => address === peer).map(({ ether }) => ether);
      for (const ether of [await network.neighbour(device, peer), ...noted])
        if (ether !== '') this.#learn(peer, ether);
    }
  }

  /** The newest ones: a machine that claims a peer's address with ever other ones must not fill the memory. */
  #learn(peer: string, ether: string): void {
    const ethers = this.#peers.get(peer) ?? new Set<string>();
    this.#peers.set(peer, ethers);
    ethers.delete(ether);
    ethers.add(ether);
    const [oldest = ''] = ethers;
    if (ethers.size > MAX_ETHERS_OF_PEER) ethers.delete(oldest);
  }

  async #watch(device: string, now: Set<string>): Promise<void> {
    const { network } = this.#options;
    if (device !== this.#device) {
      this.#hasTables = true;
      await network.make(device);
      this.#device = device;
      this.#watched = new Set();
    }
    const before = this.#watched;
    await network.watch(
      [...now].filter((address) => !before.has(address)),
      [...before].filter((address) => !now.has(address)),
    );
    this.#watched = now;
    for (const address of this.#asked.keys()) if (!now.has(address)) this.#asked.delete(address);
  }

  #keep(
    sure: readonly Answer[],
    known: ReadonlySet<string>,
    usersOf: ReadonlyMap<string, readonly OwnerKey[]>,
  ): void {
    const { holds, onChanged } = this.#options;
    const now = new Map<string, Map<string, number>>();
    const add = (address: string, ether: string, seen: number) =>
      now.set(address, (now.get(address) ?? new Map<string, number>()).set(ether, seen));
    for (const [address, ethers] of this.#found)
      for (const [ether, seen] of ethers) {
        // It is over when a later question had no answer; who holds the address does not ask.
        const isOver = holds(address) || (this.#asked.get(address) ?? 0) > seen;
        if (!isOver && usersOf.has(address) && !known.has(ether)) add(address, ether, seen);
      }
    for (const { address, ether } of sure) add(address, ether, this.#clock.monotonic());
    const textOf = (found: ReadonlyMap<string, number> | undefined) =>
      [...(found?.keys() ?? [])].sort().join();
    const before = this.#found;
    this.#found = now;
    const changed = [...new Set([...before.keys(), ...now.keys()])].filter(
      (address) => textOf(before.get(address)) !== textOf(now.get(address)),
    );
    if (changed.length > 0) onChanged(new Set(changed.flatMap((address) => usersOf.get(address) ?? [])));
  }

  /** Asks first for VIPs that were not asked for the longest. */
  async #ask(device: string, usersOf: ReadonlyMap<string, unknown>): Promise<void> {
    const { holds, network } = this.#options;
    const now = this.#clock.monotonic();
    const isDue = (address: string): boolean => {
      const last = this.#asked.get(address);
      const interval = this.#found.has(address) ? SHORT_ASK_INTERVAL_MS : ASK_INTERVAL_MS;
      return !holds(address) && (last === undefined || now - last >= interval);
    };
    const lastOf = (address: string): number => this.#asked.get(address) ?? Number.NEGATIVE_INFINITY;
    const due = [...usersOf.keys()].filter(isDue).sort((a, b) => (lastOf(a) < lastOf(b) ? -1 : 1));
    const asked = due.slice(0, MAX_ASKED);
    for (const address of asked) this.#asked.set(address, now);
    if (asked.length > 0) await network.ask(device, asked);
  }
}
