// Unique numbers for the ACLs of all listeners, by which a running HAProxy is told to change one.
// A number is a hash of listener and line, so that both hosts choose the same; where two hashes meet, the later one
// moves on by one.

import { createHash } from 'node:crypto';

const MAX_ID = 2 ** 31 - 1;

export class AclIds {
  /** Number to `listener#line`. */
  readonly #owners = new Map<number, string>();
  /** `listener#line` to number. */
  readonly #ids = new Map<string, number>();
  readonly #hash: (text: string) => number;

  /** `hash` is given by tests only. */
  constructor(hash: (text: string) => number = hashOf) {
    this.#hash = hash;
  }

  readonly idOf = (listener: string, line: number): number => {
    const owner = [listener, line].join('#');
    let id = this.#ids.get(owner);
    if (id === undefined) {
      id = this.#hash(owner);
      while (this.#owners.has(id)) id = ((id % MAX_ID) + 1) | 0;
      this.#owners.set(id, owner);
      this.#ids.set(owner, id);
    }
    return id;
  };

  /** Forgets a listener that is gone from the file and from every worker's plan. */
  release(listener: string): void {
    for (let line = 0; ; line++) {
      const id = this.#ids.get(`${listener}#${line}`);
      if (id === undefined) return;
      this.#ids.delete(`${listener}#${line}`);
      this.#owners.delete(id);
    }
  }
}

/** HAProxy numbers its own ACLs from 0 upwards; ours begin well above. */
function hashOf(text: string): number {
  const bits = createHash('sha256').update(text).digest().readUInt32BE(0);
  // A whole number to V8, too, which otherwise keeps each in an object of its own.
  return (100_000 + (bits % (MAX_ID - 100_000))) | 0;
}
