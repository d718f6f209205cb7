// Which addresses are VIPs, kept up to date by what has changed: several load balancers may share one. Pure.

import type { LoadBalancer } from '../model/load-balancer.ts';

export class VipBook {
  /** Service key to its addresses. */
  readonly #addresses = new Map<string, readonly string[]>();
  /** Address to the number of Services that have it. */
  readonly #users = new Map<string, number>();

  /** What a load balancer has now (undefined: it is gone); true where an address has become a VIP or is none any more. */
  update(key: string, loadBalancer: LoadBalancer | undefined): boolean {
    const before = this.#addresses.get(key) ?? [];
    const after = [...new Set(loadBalancer?.vips.map(({ address }) => address))];
    if (before.length === after.length && before.every((address, at) => address === after[at])) return false;
    if (after.length === 0) this.#addresses.delete(key);
    else this.#addresses.set(key, after);
    const came = after
      .filter((address) => !before.includes(address))
      .filter((each) => this.#count(each, 1) === 1);
    const went = before
      .filter((address) => !after.includes(address))
      .filter((each) => this.#count(each, -1) === 0);
    return came.length > 0 || went.length > 0;
  }

  addresses(): Iterable<string> {
    return this.#users.keys();
  }

  /** Keys of the Services that have one of these; looks at all. */
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
