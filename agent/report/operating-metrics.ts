// The operating status of each load balancer, listener, pool and member as metrics: a row for the status that it has.
// Members that are well have none, because nearly all members are.

import {
  type ListenerStatus,
  type LoadBalancerStatus,
  OPERATING_STATUSES,
  type OperatingStatus,
} from '../../health/operating-status.ts';
import { type StatusKind, WELL } from '../../health/status-book.ts';
import type { MetricFamily, MetricRow } from '../base/metric-family.ts';
import { Slice } from '../base/slice.ts';
import { listenerLabels, loadBalancerLabels, memberLabels } from '../haproxy/stats/labels.ts';
import type { MetricsDetail } from '../haproxy/stats/statistics.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';

const KINDS: readonly { readonly kind: StatusKind; readonly help: string; readonly details: string }[] = [
  { kind: 'load_balancer', help: 'Load balancer', details: 'listener pool member' },
  { kind: 'listener', help: 'Listener', details: 'listener pool member' },
  { kind: 'pool', help: 'Pool', details: 'pool member' },
  { kind: 'member', help: 'Member that is neither ONLINE nor NO_MONITOR', details: 'member' },
];

type Rows = Readonly<Record<StatusKind, readonly (readonly [status: OperatingStatus, row: MetricRow])[]>>;

/** `detail`: how far down they go. In slices. */
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
    help: `${help} by its operating status, which it has where this is 1`,
    parts: Array.from(byStatus, ([word, rows]) => ({
      labels: `status="${word}"`,
      rows,
      value: () => 1,
    })),
  }));
}

function rowsOf(
  { key, status, listeners }: LoadBalancerStatus,
  loadBalancer: LoadBalancer | undefined,
): Rows {
  const rows = listeners.map(({ name }): MetricRow => ({ labels: listenerLabels(name) }));
  const withRow = (status: OperatingStatus, at: number) => [status, rows[at] ?? { labels: '' }] as const;
  return {
    load_balancer: [[status, { labels: loadBalancerLabels(key) }]],
    listener: listeners.map((each, at) => withRow(each.status, at)),
    pool: listeners.map((each, at) => withRow(each.pool, at)),
    member: listeners.flatMap((each) => membersOf(each, loadBalancer)),
  };
}

function membersOf(
  { name, members }: ListenerStatus,
  loadBalancer: LoadBalancer | undefined,
): Rows['member'] {
  const unwell = members.filter(({ status }) => !WELL.has(status));
  if (unwell.length === 0) return [];
  const { pool } = loadBalancer?.listeners.find((each) => each.name === name) ?? {};
  const byName = new Map(pool?.members.map((member) => [member.name, member]));
  return unwell.map(({ name: address, status }) => [
    status,
    { labels: memberLabels(name, address, byName.get(address)) },
  ]);
}
