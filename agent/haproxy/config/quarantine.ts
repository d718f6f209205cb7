// The quarantine keeps rejected configuration out of the file, so that one load balancer does not affect others: a rejected
// load balancer continues with its last good structure, and an address that cannot be bound is left out.

import { memoByIdentity } from '../../base/memo.ts';
import { withStructureOf } from '../../model/last-structure.ts';
import type { Listener, LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import { hasSection, isForHaproxy, structureOf } from './listener-config.ts';

export interface Rejection {
  /** The refused structure; another structure is a new attempt. */
  readonly structure: string;
  readonly lastGood: LoadBalancer | undefined;
  readonly problem: Problem;
}

interface Block {
  readonly address: string;
  readonly port: number;
  readonly reason: string;
}

export class Quarantine {
  readonly #rejected = new Map<string, Rejection>();
  /** By `address port`. */
  readonly #blocked = new Map<string, Block>();
  /** An unchanged load balancer keeps its effective value, so that its rendered section stays cached. */
  #effective = new WeakMap<LoadBalancer, LoadBalancer>();

  get rejected(): number {
    return this.#rejected.size;
  }

  /** By key; plain data that is kept over a restart. */
  get rejections(): ReadonlyMap<string, Rejection> {
    return this.#rejected;
  }

  /** Takes over the rejections of an earlier agent. */
  restore(rejections: ReadonlyMap<string, Rejection>): void {
    for (const [key, rejection] of rejections) this.#rejected.set(key, rejection);
    this.#effective = new WeakMap();
  }

  get blocked(): readonly Block[] {
    return [...this.#blocked.values()];
  }

  /**
   * The load balancer as it goes into the file; undefined if it does not. A rejection ends with another desired structure, so
   * that a return to the rejected one is a new attempt with a new last good structure.
   */
  effective(desired: LoadBalancer): LoadBalancer | undefined {
    if (this.#rejected.size === 0 && this.#blocked.size === 0) return desired;
    const known = this.#effective.get(desired);
    if (known !== undefined) return known;
    const accepted = this.#accepted(desired);
    const effective = accepted && this.#bindable(accepted);
    if (effective !== undefined) this.#effective.set(desired, effective);
    return effective;
  }

  /** A second rejection of one structure means that the last good structure is refused too, and is dropped. */
  reject(desired: LoadBalancer, lastGood: LoadBalancer | undefined, message: string): void {
    const structure = structureOfAll(desired);
    const isAgain = this.#rejected.get(desired.key)?.structure === structure;
    const problem: Problem = { object: objectOf(desired.key), reason: 'ConfigurationRejected', message };
    this.#rejected.set(desired.key, { structure, lastGood: isAgain ? undefined : lastGood, problem });
    this.#effective = new WeakMap();
  }

  block(address: string, port: number, reason: string): void {
    this.#blocked.set(`${address} ${port}`, { address, port, reason });
    this.#effective = new WeakMap();
  }

  unblock(address: string, port: number): void {
    if (this.#blocked.delete(`${address} ${port}`)) this.#effective = new WeakMap();
  }

  isBlocked(address: string, port: number): boolean {
    return this.#blocked.has(`${address} ${port}`);
  }

  /** The load balancer was removed. */
  forget(key: string): void {
    if (this.#rejected.delete(key)) this.#effective = new WeakMap();
  }

  problemsOf(desired: LoadBalancer): readonly Problem[] {
    const problems: Problem[] = [];
    const rejection = this.#rejected.get(desired.key);
    if (rejection !== undefined && rejection.structure === structureOfAll(desired))
      problems.push(rejection.problem);
    if (this.#blocked.size === 0) return problems;
    for (const { protocol, port, addresses } of desired.listeners.filter(isForHaproxy)) {
      for (const address of addresses) {
        const block = this.#blocked.get(`${address} ${port}`);
        if (block === undefined) continue;
        const message = `Cannot listen on ${address} port ${port}: ${block.reason}`;
        problems.push({
          object: objectOf(desired.key),
          reason: 'AddressUnavailable',
          message,
          port: { protocol, port },
        });
      }
    }
    return problems;
  }

  #accepted(desired: LoadBalancer): LoadBalancer | undefined {
    const rejection = this.#rejected.get(desired.key);
    if (rejection === undefined) return desired;
    if (rejection.structure !== structureOfAll(desired)) {
      this.#rejected.delete(desired.key);
      return desired;
    }
    return rejection.lastGood && lastGoodWithDesired(desired, rejection.lastGood);
  }

  #bindable(loadBalancer: LoadBalancer): LoadBalancer {
    const isBlocked = (listener: Listener) => (address: string) => this.isBlocked(address, listener.port);
    if (!loadBalancer.listeners.some((each) => isForHaproxy(each) && each.addresses.some(isBlocked(each)))) {
      return loadBalancer;
    }
    const listeners = loadBalancer.listeners.map((listener) =>
      isForHaproxy(listener)
        ? { ...listener, addresses: listener.addresses.filter((address) => !isBlocked(listener)(address)) }
        : listener,
    );
    return { ...loadBalancer, listeners };
  }
}

/** The structure of all listeners with a section; '' if there is none. */
export const structureOfAll = memoByIdentity(({ listeners }: LoadBalancer): string =>
  listeners.filter(hasSection).map(structureOf).join('\n'),
);

/**
 * The last good listeners with the desired members, clients and routes, which continue to change. An address that is no longer
 * desired may belong to another load balancer, and is left out.
 */
function lastGoodWithDesired(desired: LoadBalancer, lastGood: LoadBalancer): LoadBalancer {
  const listeners = lastGood.listeners.flatMap((listener) => {
    const today = desired.listeners.find(({ name }) => name === listener.name);
    if (today === undefined) return [];
    const addresses = listener.addresses.filter((address) => today.addresses.includes(address));
    return [{ ...withStructureOf(listener, today), addresses }];
  });
  return { ...desired, listeners };
}
