// Keeps what HAProxy or this host refuses out of the file, so that one load balancer's fault is nobody else's:
// a rejected load balancer goes on with its last good structure, an address that cannot be bound is left out.

import type { Listener, LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import { isForHaproxy, structureOf } from './listener-config.ts';

export interface Rejection {
  /** The structure that was refused; another one is tried afresh. */
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
  /** `address port` to why it cannot be bound. */
  readonly #blocked = new Map<string, Block>();
  /** The same load balancer gives the same effective value, so that rendered sections stay cached. */
  #effective = new WeakMap<LoadBalancer, LoadBalancer>();

  get rejected(): number {
    return this.#rejected.size;
  }

  /** By key; plain data, to be kept over a restart. */
  get rejections(): ReadonlyMap<string, Rejection> {
    return this.#rejected;
  }

  /** What an agent before this one had rejected. */
  restore(rejections: ReadonlyMap<string, Rejection>): void {
    for (const [key, rejection] of rejections) this.#rejected.set(key, rejection);
    this.#effective = new WeakMap();
  }

  get blocked(): readonly Block[] {
    return [...this.#blocked.values()];
  }

  /**
   * What of a load balancer goes into the file; undefined where nothing does. A rejection ends as soon as something
   * else is wanted, so that going back to what was rejected is a new attempt, with a new last good structure.
   */
  effective(wanted: LoadBalancer): LoadBalancer | undefined {
    if (this.#rejected.size === 0 && this.#blocked.size === 0) return wanted;
    const known = this.#effective.get(wanted);
    if (known !== undefined) return known;
    const accepted = this.#accepted(wanted);
    const effective = accepted && this.#bindable(accepted);
    if (effective !== undefined) this.#effective.set(wanted, effective);
    return effective;
  }

  /** Said twice of one structure, it means that what stood in for it is refused as well: then nothing does. */
  reject(wanted: LoadBalancer, lastGood: LoadBalancer | undefined, message: string): void {
    const structure = structureOfAll(wanted);
    const isAgain = this.#rejected.get(wanted.key)?.structure === structure;
    const problem: Problem = { object: objectOf(wanted.key), reason: 'ConfigurationRejected', message };
    this.#rejected.set(wanted.key, { structure, lastGood: isAgain ? undefined : lastGood, problem });
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

  /** Forgets what is kept of a load balancer that is gone. */
  forget(key: string): void {
    if (this.#rejected.delete(key)) this.#effective = new WeakMap();
  }

  problemsOf(wanted: LoadBalancer): readonly Problem[] {
    const problems: Problem[] = [];
    const rejection = this.#rejected.get(wanted.key);
    if (rejection !== undefined && rejection.structure === structureOfAll(wanted))
      problems.push(rejection.problem);
    if (this.#blocked.size === 0) return problems;
    for (const { protocol, port, addresses } of wanted.listeners.filter(isForHaproxy)) {
      for (const address of addresses) {
        const block = this.#blocked.get(`${address} ${port}`);
        if (block === undefined) continue;
        const message = `Cannot listen on ${address} port ${port}: ${block.reason}`;
        problems.push({
          object: objectOf(wanted.key),
          reason: 'AddressUnavailable',
          message,
          port: { protocol, port },
        });
      }
    }
    return problems;
  }

  #accepted(wanted: LoadBalancer): LoadBalancer | undefined {
    const rejection = this.#rejected.get(wanted.key);
    if (rejection === undefined) return wanted;
    if (rejection.structure !== structureOfAll(wanted)) {
      this.#rejected.delete(wanted.key);
      return wanted;
    }
    return rejection.lastGood && inPlaceOf(wanted, rejection.lastGood);
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

/** The structure of all listeners that HAProxy serves. */
export function structureOfAll({ listeners }: LoadBalancer): string {
  return listeners.filter(isForHaproxy).map(structureOf).join('\n');
}

/**
 * The last good listeners with today's members and clients: those go on changing while a new option waits for its
 * author. An address that the load balancer has given up may be another's by now, so it is not listened on any more.
 */
function inPlaceOf(wanted: LoadBalancer, lastGood: LoadBalancer): LoadBalancer {
  const listeners = lastGood.listeners.flatMap((listener) => {
    const today = wanted.listeners.find(({ name }) => name === listener.name);
    if (today === undefined) return [];
    const addresses = listener.addresses.filter((address) => today.addresses.includes(address));
    const pool = { ...listener.pool, members: today.pool.members };
    return [{ ...listener, addresses, allowedCidrs: today.allowedCidrs, pool }];
  });
  return { ...wanted, listeners };
}
