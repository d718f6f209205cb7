// The contract of a translator: one for each kind of owner. It says which ports an owner asks for, makes its load
// balancer, and names what it has read, so that a change of that makes the owner dirty.

import type { Dependency } from '../model/desired-state.ts';
import type { Ignored, LoadBalancer, OwnerKey } from '../model/load-balancer.ts';
import type { OwnerKind } from '../model/names.ts';
import type { PortRequest } from '../model/port-owners.ts';

export interface Translator {
  readonly kind: OwnerKind;
  /** Decided before any owner is translated, because owners contend for ports. */
  ports(key: OwnerKey): PortWishes;
  /** `before`: the load balancer that this owner has now. Pure: reads the store of objects and the settings. */
  translate(key: OwnerKey, before: LoadBalancer | undefined): Translation;
}

export interface PortWishes {
  /** Of the owner, milliseconds since the epoch; Infinity if unknown. */
  readonly created: number;
  readonly ports: readonly PortRequest[];
}

export interface Translation {
  /** undefined if there is no such owner. */
  readonly result: LoadBalancer | Ignored | undefined;
  readonly reads: readonly Dependency[];
}
