// Which load balancers a person means by a namespace: its own, and those whose routes send to a pool of it, such as a Gateway
// that the namespaces of a cluster share. Pure.

import type { OwnerKey } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';
import type { PoolUses } from '../../model/pool-uses.ts';

/** `namespace`: '' for any. */
export function isOfNamespace(key: OwnerKey, namespace: string, poolUses: Pick<PoolUses, 'usesOf'>): boolean {
  return (
    namespace === '' ||
    ownerOf(key).namespace === namespace ||
    poolUses.usesOf(key).some(({ pool }) => ownerOf(pool).namespace === namespace)
  );
}
