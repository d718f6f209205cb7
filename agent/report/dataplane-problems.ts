// What the dataplanes have found to be wrong with a load balancer, for all who tell of it. Reads them; changes nothing.

import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { KeepalivedDataplane } from '../vips/keepalived/dataplane.ts';

export interface Dataplanes {
  readonly haproxy: Pick<HaproxyDataplane, 'problemsOf'>;
  /** undefined where this host has no VRRP. */
  readonly keepalived: Pick<KeepalivedDataplane, 'problemsOf'> | undefined;
}

export function dataplaneProblems(
  loadBalancer: LoadBalancer,
  { haproxy, keepalived }: Dataplanes,
): readonly Problem[] {
  return [...haproxy.problemsOf(loadBalancer), ...(keepalived?.problemsOf(loadBalancer) ?? [])];
}
