// Which of several owners gets an address and port that none of them has yet: one from a folder of this host, then one that
// has the address already, then one that only names it. Pure.
// Why: docs/design/decisions/0014-precedence.md

import type { Vip } from '../model/load-balancer.ts';
import type { PortRequest } from '../model/port-owners.ts';

const RANKS = { given: 0, named: 1 } as const;

/** `statusIPs`: the addresses that the owner's status shows. */
export function precedenceOf(
  { source, address }: Vip,
  { isOfFolder, statusIPs }: { readonly isOfFolder: boolean; readonly statusIPs: readonly string[] },
): Pick<PortRequest, 'overrules' | 'rank'> {
  const isGiven = source === 'pool' || source === 'spec.clusterIPs' || statusIPs.includes(address);
  // Owners of folders overrule, so that no user of the cluster can take an address that the host itself serves, such as
  // that of the API server. Their author could write any status.
  return { overrules: isOfFolder, rank: !isOfFolder && isGiven ? RANKS.given : RANKS.named };
}

/** The age of an owner among others: the author of a manifest could write any time. */
export function ageOf(created: number, isOfFolder: boolean): number {
  return isOfFolder ? Number.POSITIVE_INFINITY : created;
}
