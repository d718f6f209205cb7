// Where each member stands: all pools that let members rest, by the member's name, so that what happens to it in one of them
// counts in all.

import type { Listener, LoadBalancer, Member } from '../../model/load-balancer.ts';
import { isForHaproxy, isRouted, isRoutePool } from '../config/listener-config.ts';

export interface Place {
  /** The owner's key. */
  readonly key: string;
  readonly listener: Listener;
  readonly member: Member;
}

export class MemberPlaces {
  /** Key: the member's name, then the listener's. */
  readonly #places = new Map<string, Map<string, Place>>();
  readonly #known = new Map<string, LoadBalancer>();

  of(member: string): readonly Place[] {
    return [...(this.#places.get(member)?.values() ?? [])];
  }

  has(member: string): boolean {
    return this.#places.has(member);
  }

  /** The listeners whose pools let members rest. */
  *listeners(): Iterable<Listener> {
    for (const loadBalancer of this.#known.values()) yield* listenersOf(loadBalancer);
  }

  /** `loadBalancer`: undefined if it is gone. */
  put(key: string, loadBalancer: LoadBalancer | undefined): void {
    const before = this.#known.get(key);
    if (before === loadBalancer) return;
    for (const { name, pool } of listenersOf(before))
      for (const member of pool.members) {
        const places = this.#places.get(member.name);
        places?.delete(name);
        if (places?.size === 0) this.#places.delete(member.name);
      }
    const listeners = listenersOf(loadBalancer);
    if (loadBalancer === undefined || listeners.length === 0) {
      this.#known.delete(key);
      return;
    }
    this.#known.set(key, loadBalancer);
    for (const listener of listeners)
      for (const member of listener.pool.members) {
        const places = this.#places.get(member.name) ?? new Map<string, Place>();
        this.#places.set(member.name, places.set(listener.name, { key, listener, member }));
      }
  }
}

function listenersOf(loadBalancer: LoadBalancer | undefined): readonly Listener[] {
  return (loadBalancer?.listeners ?? []).filter(
    (listener) =>
      listener.pool.ejection !== undefined &&
      !isRouted(listener) &&
      (isForHaproxy(listener) || isRoutePool(listener)),
  );
}
