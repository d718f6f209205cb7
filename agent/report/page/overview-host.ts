// What the status page shows of the cluster, the address pools, the kernel and the state on disk. Pure.

import type { PageCluster, PageDisk, PageKernel, PagePool } from '../../../health/page-model.ts';
import type { StatusSources } from '../answers/status.ts';
import { cut } from './overview-row.ts';
/** undefined without a cluster. */
export function clusterOf({ api, writing }: Pick<StatusSources, 'api' | 'writing'>): PageCluster | undefined {
  const now = api();
  if (now === undefined) return undefined;
  const { isSynced, fault, lastAnswer } = now;
  const { leading = false, leader = '' } = writing() ?? {};
  return {
    ...{ isSynced, fault: cut(fault), isWriter: leading, writer: cut(leader) },
    lastAnswer: minuteOf(lastAnswer),
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

/** undefined if no load balancer needs the kernel. */
export function kernelOf(
  { dataplane, connectionSync }: Pick<StatusSources, 'dataplane' | 'connectionSync'>,
  loadBalancers: number,
): PageKernel | undefined {
  if (loadBalancers === 0) return undefined;
  const sync = connectionSync.status();
  return {
    loadBalancers,
    fault: cut(dataplane.status().unserved),
    sync: sync === undefined ? 'off' : cut(sync.fault) || 'on',
  };
}

const MAX_FAULTS = 5;

export function diskOf({ disk }: Pick<StatusSources, 'disk'>): PageDisk {
  const { folder, files } = disk();
  return {
    folder,
    writtenAt: minuteOf(Math.max(0, ...files.map(({ writtenAt }) => writtenAt))),
    faults: files
      .filter(({ fault }) => fault !== '')
      .slice(0, MAX_FAULTS)
      .map(({ path, fault }) => ({ file: path, why: cut(fault) })),
  };
}

/** ISO 8601, by the minute, because each change is sent to the browser; '' for 0. */
function minuteOf(milliseconds: number): string {
  return milliseconds === 0 ? '' : new Date(milliseconds - (milliseconds % 60_000)).toISOString();
}
