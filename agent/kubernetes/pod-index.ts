// Pods by their addresses. Owns its index; touches nothing else.

import type { Pod } from './objects.ts';

const NONE: readonly never[] = [];

export class PodIndex {
  /** Address → the pods that have it: more than one only while the API still shows one that has ended. */
  readonly #podsAt = new Map<string, readonly Pod[]>();

  at(address: string): readonly Pod[] {
    return this.#podsAt.get(address) ?? NONE;
  }

  add(pod: Pod): void {
    for (const address of ownAddresses(pod)) this.#podsAt.set(address, [...this.at(address), pod]);
  }

  delete(pod: Pod): void {
    for (const address of ownAddresses(pod)) {
      const left = this.at(address).filter((each) => each !== pod);
      if (left.length === 0) this.#podsAt.delete(address);
      else this.#podsAt.set(address, left);
    }
  }
}

/** The addresses that no other pod has: not those of its Node, and not those of before its end. */
function ownAddresses({ addresses, hostNetwork, hasEnded }: Pod): readonly string[] {
  return hostNetwork || hasEnded ? NONE : addresses;
}
