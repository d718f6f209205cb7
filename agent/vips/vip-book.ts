// The set of VIPs, updated from changed load balancers. Several load balancers may share an address. Pure.

import type { LoadBalancer } from '../model/load-balancer.ts';

export class VipBook {
  /** Service key to its addresses. */
  readonly #addresses = new Map<string, readonly string[]>();
  /** Key: an address; value: how many Services have it. */
  readonly #users = new Map<string, number>();

  readonly #isOwn: (address: string) => boolean;

  /** `isOwn`: false for VIPs that do not count. */
  constructor(isOwn: (address: string) => boolean = () => true) {
    this.#isOwn = isOwn;
  }

  /** The load balancer now (undefined: it is gone); true if an address has become a VIP or has stopped being one. */
  update(key: string, loadBalancer: Pick<LoadBalancer, 'vips'> | undefined): boolean {
    const before = this.#addresses.get(key) ?? [];
    const own = loadBalancer?.vips.map(({ address }) => address).filter(this.#isOwn);
    const after = [...new Set(own)];
    if (before.length === after.length && before.every((address, at) => address === after[at])) return false;
    if (after.length === 0) this.#addresses.delete(key);
    else this.#addresses.set(key, after);
    const added = after
      .filter((address) => !before.includes(address))
      .filter((each) => this.#count(each, 1) === 1);
    const removed = before
      .filter((address) => !after.includes(address))
      .filter((each) => this.#count(each, -1) === 0);
    return added.length > 0 || removed.length > 0;
  }

  addresses(): Iterable<string> {
    return this.#users.keys();
  }

  /** Keys of the Services that have one of these addresses; the cost is in proportion to all Services. */
  usersOf(addresses: ReadonlySet<string>): readonly string[] {
    return [...this.#addresses].flatMap(([key, own]) =>
      own.some((each) => addresses.has(each)) ? [key] : [],
    );
  }

  #count(address: string, step: 1 | -1): number {
    const users = (this.#users.get(address) ?? 0) + step;
    if (users === 0) this.#users.delete(address);
    else this.#users.set(address, users);
    return users;
  }
}
