// Decides which route each VIP gets, from what this host serves: one that is new is announced once every listener on
// it is served; one that is announced already may lack a listener for a moment, such as during a reload. Pure, with a clock.
// The work is in proportion to the load balancers that changed.

import type { Listener, OwnerKey } from '../../model/load-balancer.ts';
import type { StandingReason } from '../announcer.ts';
import type { Worn } from '../bgp.ts';

export interface VipWearOptions {
  /** As of Dataplane. */
  readonly serves: (listener: string, address: string) => boolean;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** The VIP is announced by this announcer. */
  readonly isRouted?: (address: string) => boolean;
  /** Why the VIP is not announced whatever is served, as a sentence; '' for no reason. */
  readonly whyNot?: (address: string, owners: Iterable<OwnerKey>) => string;
}

/** After this time without a listener a route is worn last. */
export const MOST_UNSERVED_MS = 2_000;

type ListenerOfVip = Pick<Listener, 'name' | 'engine' | 'addresses'>;

/** What counts of a load balancer. */
export interface WithVips {
  readonly vips: readonly { readonly address: string }[];
  readonly listeners: readonly ListenerOfVip[];
}

interface Vip {
  /** Load balancer that has it → its listeners on it. */
  readonly owners: Map<OwnerKey, readonly ListenerOfVip[]>;
  /** Since when a listener is not served; undefined if all are. */
  unservedSince: number | undefined;
  /** What it is without the standing of the host; undefined: not announced yet. */
  worn: Worn | undefined;
}

export class VipWear {
  readonly #options: VipWearOptions;
  readonly #vips = new Map<string, Vip>();
  /** Load balancer → its addresses. */
  readonly #addresses = new Map<OwnerKey, readonly string[]>();
  /** Addresses with a listener that is not served. */
  readonly #unserved = new Set<string>();

  constructor(options: VipWearOptions) {
    this.#options = options;
  }

  /** The VIPs of an agent before this one, which BIRD announces: they stay until they are known to be otherwise. */
  adopt(routes: Iterable<readonly [address: string, worn: Worn]>): void {
    for (const [address, worn] of routes) this.#vipOf(address).worn = worn;
  }

  /** After adopt() and the first follow() of all: forgets VIPs of an agent before this one that no load balancer has now. */
  forgetOthers(): void {
    for (const [address, { owners }] of this.#vips) if (owners.size === 0) this.#vips.delete(address);
  }

  /** The load balancer now; undefined: it is gone. True if a VIP has come or gone. */
  follow(key: OwnerKey, loadBalancer: WithVips | undefined): boolean {
    const before = this.#addresses.get(key) ?? [];
    const { isRouted = () => true } = this.#options;
    const all = loadBalancer?.vips.map(({ address }) => address).filter(isRouted);
    const addresses = [...new Set(all)];
    let hasChanged = false;
    for (const address of before)
      if (!addresses.includes(address)) hasChanged = this.#leave(address, key) || hasChanged;
    for (const address of addresses) {
      hasChanged = !this.#vips.has(address) || hasChanged;
      const own = loadBalancer?.listeners.filter((each) => each.addresses.includes(address)) ?? [];
      this.#vipOf(address).owners.set(key, own);
    }
    if (addresses.length === 0) this.#addresses.delete(key);
    else this.#addresses.set(key, addresses);
    return hasChanged;
  }

  /** What these load balancers serve may have changed. True if a route has to change. */
  look(keys: Iterable<OwnerKey>): boolean {
    let hasChanged = false;
    for (const key of keys)
      for (const address of this.#addresses.get(key) ?? []) hasChanged = this.#judge(address) || hasChanged;
    return hasChanged;
  }

  /** Looks at VIPs with a listener that is not served: time has passed. True if a route has to change. */
  lookAgain(): boolean {
    let hasChanged = false;
    for (const address of [...this.#unserved]) hasChanged = this.#judge(address) || hasChanged;
    return hasChanged;
  }

  /** True if a VIP waits for a listener. */
  get isWaiting(): boolean {
    return this.#unserved.size > 0;
  }

  has(address: string): boolean {
    return this.#vips.has(address);
  }

  /** The load balancers that have this VIP. */
  ownersOf(address: string): Iterable<OwnerKey> {
    return this.#vips.get(address)?.owners.keys() ?? [];
  }

  /** All VIPs of this host, announced or not. */
  addresses(): Iterable<string> {
    return this.#vips.keys();
  }

  /** The routes of a host that these reasons lower. */
  *routes(reasons: readonly StandingReason[]): Generator<readonly [address: string, worn: Worn]> {
    for (const [address, vip] of this.#vips) {
      const worn = wornBy(vip, reasons);
      if (worn !== undefined && this.#whyNot(address, vip) === '') yield [address, worn];
    }
  }

  /** Why a VIP has no route, or a worse one, as a sentence; '' if it is announced first. */
  whyNotFirst(address: string, reasons: readonly StandingReason[]): string {
    const vip = this.#vips.get(address);
    if (vip === undefined) return 'no load balancer of this host has it';
    const whyNot = this.#whyNot(address, vip);
    if (whyNot !== '') return whyNot;
    const worn = wornBy(vip, reasons);
    if (worn === 'first') return '';
    if (worn === undefined && vip.worn !== undefined) return 'HAProxy does not answer on this host';
    if (vip.unservedSince !== undefined) return 'a listener on it is not served on this host';
    return worn === undefined
      ? 'it is not served on this host yet'
      : `this host is lowered: ${reasons.join(', ')}`;
  }

  #whyNot(address: string, { owners }: Vip): string {
    return this.#options.whyNot?.(address, owners.keys()) ?? '';
  }

  #vipOf(address: string): Vip {
    const vip = this.#vips.get(address) ?? { owners: new Map(), unservedSince: undefined, worn: undefined };
    this.#vips.set(address, vip);
    return vip;
  }

  /** True if no load balancer has it any more. */
  #leave(address: string, key: OwnerKey): boolean {
    const vip = this.#vips.get(address);
    vip?.owners.delete(key);
    if (vip === undefined || vip.owners.size > 0) return false;
    this.#unserved.delete(address);
    return this.#vips.delete(address);
  }

  #judge(address: string): boolean {
    const { serves, now } = this.#options;
    const vip = this.#vips.get(address);
    if (vip === undefined) return false;
    const before = vip.worn;
    const listeners = [...vip.owners.values()].flat();
    if (listeners.every(({ name }) => serves(name, address))) {
      this.#unserved.delete(address);
      vip.unservedSince = undefined;
      vip.worn = 'first';
    } else {
      this.#unserved.add(address);
      vip.unservedSince ??= now();
      if (now() - vip.unservedSince >= MOST_UNSERVED_MS) vip.worn = 'last';
    }
    return vip.worn !== before;
  }
}

/** Without HAProxy a route would lead clients to a host that refuses them; the kernel forwards all the same. */
function wornBy({ worn, owners }: Vip, reasons: readonly StandingReason[]): Worn | undefined {
  if (worn === undefined || reasons.length === 0) return worn;
  const needsHaproxy = [...owners.values()].flat().some(({ engine }) => engine === 'haproxy');
  return reasons.includes('haproxy') && needsHaproxy ? undefined : 'last';
}
