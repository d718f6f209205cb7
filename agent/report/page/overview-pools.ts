// How the pools of routes are folded into the load balancers that send to them, for the status page: each pool is a line in
// the details of its owners, and names these in its own. Pure.

import type { PageDetail, PageRoutePool } from '../../../health/page-model.ts';
import { inNaturalOrder } from '../../base/natural-order.ts';
import { serviceOfPool } from '../../model/names.ts';
import type { PoolUses } from '../../model/pool-uses.ts';
import type { LoadBalancerSummaries } from '../answers/load-balancer-summaries.ts';
import { type LoadBalancerSummary, rankOf } from '../answers/load-balancer-summary.ts';

/** The most of one load balancer, which counts the rest. */
const MAX_POOLS = 50;
const MAX_USERS = 10;

/** `key`: of a load balancer, or of a pool. */
export function foldedPools(
  key: string,
  rows: Pick<LoadBalancerSummaries, 'row'>,
  poolUses: Pick<PoolUses, 'usesOf' | 'usersOf'>,
): Pick<PageDetail, 'pools' | 'morePools' | 'users'> {
  const pools = [...new Set(poolUses.usesOf(key).map(({ pool }) => pool))]
    .map((pool) => rows.row(pool))
    .filter((row) => row !== undefined)
    .sort((a, b) => rankOf(a) - rankOf(b) || inNaturalOrder(a.key, b.key));
  return {
    pools: pools.slice(0, MAX_POOLS).map(poolOf),
    morePools: Math.max(0, pools.length - MAX_POOLS),
    users: [...poolUses.usersOf(key)].sort(inNaturalOrder).slice(0, MAX_USERS),
  };
}

function poolOf({ key, verdict, ready, down, members, problems }: LoadBalancerSummary): PageRoutePool {
  const { service } = serviceOfPool(key);
  return { key, service, verdict, ready, down, members, problems: problems.length };
}
