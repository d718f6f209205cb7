// What is known of connections that pods open, as the reports ask for it; from memory.

import type { MetricFamily } from '../base/metric-family.ts';
import type { OwnerKey } from '../model/load-balancer.ts';

/** A pod whose connections leave from a VIP. */
export interface EgressMapping {
  /** Its address. */
  readonly pod: string;
  readonly vip: string;
  /** The Service that has the VIP. */
  readonly owner: OwnerKey;
  /** `Pod/web-1`; '' if unknown. */
  readonly target: string;
}

/** All Services together. */
export interface EgressStatus {
  readonly pods: number;
  readonly vips: number;
  /** '' for none. */
  readonly fault: string;
}

export interface EgressFacts {
  /** undefined if no Service asks for it. */
  status(): EgressStatus | undefined;
  /** How connections of the pod with this address leave; undefined: from no VIP. */
  mappingOf(pod: string): EgressMapping | undefined;
  /** As mappingOf(), by the pod's name, in each family; `namespace`: '' for any. */
  mappingsOf(namespace: string, target: string): readonly EgressMapping[];
  families(): Promise<readonly MetricFamily[]>;
}
