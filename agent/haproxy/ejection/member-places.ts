// Where each member stands: all pools of its namespace that let members rest, so that what happens to it in one of them counts
// in all. Not those of other namespaces: their authors could let it rest for theirs.

import type { Listener, LoadBalancer, Member } from '../../model/load-balancer.ts';
import { isForHaproxy, isRouted, isRoutePool } from '../config/listener-config.ts';

export interface Place {
  /** The owner's key. */
  readonly key: string;
  readonly listener: Listener;
  readonly member: Member;
}

/** What a namespace has of a member, as the name of a probe: `default:10.0.0.1:8080`. */
export function memberId(namespace: string, name: string): string {
  return `${namespace}:${name}`;
}

export class MemberPlaces {
  /** Key: the id of the member, then the listener's name. */
  readonly #places = new Map<string, Map<string, Place>>();
  readonly #known = new Map<string, LoadBalancer>();

  /** By the id of the member. */
  of(id: string): readonly Place[] {
    return [...(this.#places.get(id)?.values() ?? [])];
  }

  has(id: string): boolean {
    return this.#places.has(id);
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
        const id = memberId(before?.namespace ?? '', member.name);
        const places = this.#places.get(id);
        places?.delete(name);
        if (places?.size === 0) this.#places.delete(id);
      }
    const listeners = listenersOf(loadBalancer);
    if (loadBalancer === undefined || listeners.length === 0) {
      this.#known.delete(key);
      return;
    }
    this.#known.set(key, loadBalancer);
    for (const listener of listeners)
      for (const member of listener.pool.members) {
        const id = memberId(loadBalancer.namespace, member.name);
        const places = this.#places.get(id) ?? new Map<string, Place>();
        this.#places.set(id, places.set(listener.name, { key, listener, member }));
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
