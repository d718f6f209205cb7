// Unique ids for the ACLs of all listeners, by which commands address them. An id is a hash of listener and line, so that
// both hosts choose the same; if two hashes are equal, the later one takes the next number.
// Why: docs/design/decisions/0004-source-ranges-as-acls.md

import { createHash } from 'node:crypto';

const MAX_ID = 2 ** 31 - 1;

export class AclIds {
  /** Key: an id; value: `listener#line`. */
  readonly #owners = new Map<number, string>();
  /** Key: `listener#line`; value: its id. */
  readonly #ids = new Map<string, number>();
  readonly #hash: (text: string) => number;

  /** `hash`: for tests. */
  constructor(hash: (text: string) => number = hashOf) {
    this.#hash = hash;
  }

  readonly idOf = (listener: string, line: number): number => {
    const owner = `${listener}#${line}`;
    let id = this.#ids.get(owner);
    if (id === undefined) {
      id = this.#hash(owner);
      while (this.#owners.has(id)) id = (id % MAX_ID) + 1;
      this.#owners.set(id, owner);
      this.#ids.set(owner, id);
    }
    return id;
  };

  /** Frees the ids of a listener that is neither in a worker nor desired. */
  release(listener: string): void {
    for (let line = 0; ; line++) {
      const id = this.#ids.get(`${listener}#${line}`);
      if (id === undefined) return;
      this.#ids.delete(`${listener}#${line}`);
      this.#owners.delete(id);
    }
  }
}

/** HAProxy numbers ACLs without an id from 0 upwards. */
function hashOf(text: string): number {
  const bits = createHash('sha256').update(text).digest().readUInt32BE(0);
  return 100_000 + (bits % (MAX_ID - 100_000));
}
