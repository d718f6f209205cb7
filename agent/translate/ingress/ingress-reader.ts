// Reads Ingresses, and keeps what it has made of one while the Ingress and its Services are as they were.

import type { Ingress } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Service } from '../../kubernetes/objects.ts';
import { type FindService, type ReadIngress, readIngress } from './ingress-rules.ts';

interface Kept {
  readonly read: ReadIngress;
  readonly found: ReadonlyMap<string, Service | undefined>;
}

export class IngressReader {
  readonly #service: FindService;
  readonly #kept = new WeakMap<Ingress, Kept>();

  constructor(service: FindService) {
    this.#service = service;
  }

  /** The same value while nothing that it is made from has changed. */
  of(ingress: Ingress): ReadIngress {
    const kept = this.#kept.get(ingress);
    if (kept !== undefined && [...kept.found].every(([key, service]) => this.#service(key) === service))
      return kept.read;
    const found = new Map<string, Service | undefined>();
    const read = readIngress(ingress, (key) => {
      found.set(key, this.#service(key));
      return found.get(key);
    });
    this.#kept.set(ingress, { read, found });
    return read;
  }
}
