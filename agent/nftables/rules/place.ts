// A destination of packets of clients. A value only.

import type { Family, Protocol } from '../../model/load-balancer.ts';

export interface Place {
  readonly family: Family;
  readonly address: string;
  readonly protocol: Protocol;
  readonly port: number;
}
