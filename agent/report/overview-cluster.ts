// What the status page shows of the cluster and of the address pools. Pure.

import type { PageCluster, PagePool } from '../../health/page-model.ts';
import { cut } from './overview-row.ts';
import type { StatusSources } from './status.ts';

/** undefined without a cluster. */
export function clusterOf({ api, writing }: Pick<StatusSources, 'api' | 'writing'>): PageCluster | undefined {
  const now = api();
  if (now === undefined) return undefined;
  const { isSynced, fault, lastAnswer } = now;
  const { leading = false, leader = '' } = writing() ?? {};
  return {
    ...{ isSynced, fault: cut(fault), isWriter: leading, writer: cut(leader) },
    // By the minute, because each change is sent to the browser.
    lastAnswer: lastAnswer === 0 ? '' : new Date(lastAnswer - (lastAnswer % 60_000)).toISOString(),
  };
}

const MAX_POOLS = 5;

export function poolsOf({ addresses }: Pick<StatusSources, 'addresses'>): {
  readonly pools: readonly PagePool[];
  readonly morePools: number;
} {
  const { pools } = addresses.status();
  return {
    pools: pools.slice(0, MAX_POOLS).map(({ name, family, free, used }) => ({ name, family, free, used })),
    morePools: Math.max(0, pools.length - MAX_POOLS),
  };
}
