// The operating status of each load balancer, listener, pool and member as metrics, with a sample for its current status.
// Members that are well have no sample, because nearly all members are.

import type { MetricFamily, MetricRow, MetricsDetail } from '../../base/metric-family.ts';
import { Slice } from '../../base/slice.ts';
import { listenerSeries, loadBalancerSeries, memberSeries } from '../../dataplane/series-labels.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { OPERATING_STATUSES, type OperatingStatus } from '../../model/operating-status.ts';
import type { ListenerStatus, LoadBalancerStatus } from './operating-status.ts';
import { type StatusKind, WELL } from './status-book.ts';

const KINDS: readonly { readonly kind: StatusKind; readonly help: string; readonly details: string }[] = [
  { kind: 'load_balancer', help: 'Load balancer', details: 'listener pool member' },
  { kind: 'listener', help: 'Listener', details: 'listener pool member' },
  { kind: 'pool', help: 'Pool', details: 'pool member' },
  { kind: 'member', help: 'Member that is neither ONLINE nor NO_MONITOR', details: 'member' },
];

type Rows = Readonly<Record<StatusKind, readonly (readonly [status: OperatingStatus, row: MetricRow])[]>>;

/** `detail`: the lowest level with rows. In slices. */
export async function operatingFamilies(
  statuses: Iterable<LoadBalancerStatus>,
  loadBalancers: ReadonlyMap<string, LoadBalancer>,
  detail: MetricsDetail,
): Promise<readonly MetricFamily[]> {
  const kinds = KINDS.filter(({ details }) => details.split(' ').includes(detail)).map((kind) => ({
    ...kind,
    rows: new Map(OPERATING_STATUSES.map((status) => [status, [] as MetricRow[]])),
  }));
  const slice = new Slice();
  for (const status of statuses) {
    const own = rowsOf(status, loadBalancers.get(status.key));
    for (const { kind, rows } of kinds) for (const [word, row] of own[kind]) rows.get(word)?.push(row);
    if (slice.isOver) await slice.breathe();
  }
  return kinds.map(({ kind, help, rows: byStatus }) => ({
    name: `headgate_${kind}_operating_status`,
    type: 'gauge',
    help: `${help} by operating status: 1 for its present status`,
    parts: Array.from(byStatus, ([word, rows]) => ({
      labels: `status="${word}"`,
      rows,
      value: () => 1,
    })),
  }));
}

/** No listeners of a load balancer that is gone by now. */
function rowsOf(
  { key, status, listeners }: LoadBalancerStatus,
  loadBalancer: LoadBalancer | undefined,
): Rows {
  const known = listeners.flatMap((each) => {
    const listener = loadBalancer?.listeners.find(({ name }) => name === each.name);
    return listener === undefined ? [] : [{ each, listener, row: { labels: listenerSeries(listener) } }];
  });
  return {
    load_balancer: [[status, { labels: loadBalancerSeries(key) }]],
    // A pool of routes takes no clients, and a listener with routes has no pool of its own.
    listener: known
      .filter(({ listener }) => listener.reachedBy === 'clients')
      .map(({ each, row }) => [each.status, row] as const),
    pool: known
      .filter(({ listener }) => listener.routing === undefined)
      .map(({ each, row }) => [each.pool, row] as const),
    member: known.flatMap(({ each, listener }) => membersOf(each, listener)),
  };
}

function membersOf({ members }: ListenerStatus, listener: Listener): Rows['member'] {
  const unwell = members.filter(({ status }) => !WELL.has(status));
  if (unwell.length === 0) return [];
  const byName = new Map(listener.pool.members.map((member) => [member.name, member]));
  return unwell.map(({ name, status }) => [
    status,
    { labels: memberSeries(listener, name, byName.get(name)) },
  ]);
}
