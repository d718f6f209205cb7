// A view of the desired state: get(), has() and entries() are its own, the rest of a map follows from them.

import type { LoadBalancer } from '../model/load-balancer.ts';

export abstract class DesiredView implements ReadonlyMap<string, LoadBalancer> {
  abstract get(key: string): LoadBalancer | undefined;
  abstract has(key: string): boolean;
  abstract entries(): Generator<[string, LoadBalancer], undefined, void>;

  get size(): number {
    let size = 0;
    for (const _ of this) size++;
    return size;
  }

  forEach(
    callback: (value: LoadBalancer, key: string, map: ReadonlyMap<string, LoadBalancer>) => void,
  ): void {
    for (const [key, value] of this) callback(value, key, this);
  }

  *keys(): Generator<string, undefined, void> {
    for (const [key] of this) yield key;
  }

  *values(): Generator<LoadBalancer, undefined, void> {
    for (const [, value] of this) yield value;
  }

  [Symbol.iterator](): Generator<[string, LoadBalancer], undefined, void> {
    return this.entries();
  }
}
