// Reads Ingresses, and keeps what it has made of one while the Ingress and its Services are as they were.

import type { Ingress } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Service } from '../../kubernetes/objects.ts';
import type { ClassAuth } from './external-auth.ts';
import { type ReadIngress, readIngress } from './ingress-rules.ts';
import type { FindService } from './ordered-rules.ts';

interface Kept {
  readonly read: ReadIngress;
  /** The consent of the class, and what it says of authorization servers. */
  readonly consent: string;
  readonly found: ReadonlyMap<string, Service | undefined>;
}

export class IngressReader {
  readonly #service: FindService;
  readonly #kept = new WeakMap<Ingress, Kept>();

  constructor(service: FindService) {
    this.#service = service;
  }

  /** The same value while nothing that it is made from has changed. `consent`, `auth`: of the class, see readIngress(). */
  of(ingress: Ingress, consent: ReadonlySet<string>, auth: ClassAuth): ReadIngress {
    const kept = this.#kept.get(ingress);
    const text = [...consent].join() + auth.text;
    if (kept?.consent === text && [...kept.found].every(([key, service]) => this.#service(key) === service))
      return kept.read;
    const found = new Map<string, Service | undefined>();
    const read = readIngress(
      ingress,
      (key) => {
        found.set(key, this.#service(key));
        return found.get(key);
      },
      consent,
      auth,
    );
    this.#kept.set(ingress, { read, consent: text, found });
    return read;
  }
}
