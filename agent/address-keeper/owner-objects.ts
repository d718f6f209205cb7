// The objects of an owner that matter for its addresses. Pure: reads the store of objects.

import { requesterOf } from '../addresses/requesters.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { OwnerKey } from '../model/load-balancer.ts';

/** What its request is made from; undefined if there is none. Unchanged objects are the same values. */
export function objectsOf(cluster: Cluster, key: OwnerKey): readonly unknown[] | undefined {
  const object = requesterOf(cluster, key);
  if (object?.kind !== 'IngressClass') return object && [object];
  return [object, cluster.ingressesOf(object.name)];
}

/** The addresses that statuses show. */
export function publishedBy(cluster: Cluster, key: OwnerKey): readonly string[] {
  const object = requesterOf(cluster, key);
  if (object?.kind !== 'IngressClass') return object?.statusIPs ?? [];
  const shown = cluster.ingressesOf(object.name).find(({ statusIPs }) => statusIPs.length > 0);
  return shown?.statusIPs ?? [];
}
