// The metrics of the kernel's listeners, with the names and labels that HAProxy's have. Pure.

import type { MetricFamily } from '../base/metric-family.ts';
import { listenerSeries } from '../dataplane/series-labels.ts';
import type { Listener } from '../model/load-balancer.ts';

interface Row {
  readonly labels: string;
  readonly flows: number;
  readonly members: number;
}

/** `flows`: new ones by listener, until now; `isUp`: the kernel forwards them. */
export function kernelFamilies(
  listeners: readonly Listener[],
  flows: ReadonlyMap<string, number>,
  isUp: boolean,
): readonly MetricFamily[] {
  if (listeners.length === 0) return [];
  const rows = listeners.map(
    ({ name, labels, pool }): Row => ({
      labels: listenerSeries(labels),
      flows: flows.get(name) ?? 0,
      members: pool.members.filter(({ state }) => state === 'ready').length,
    }),
  );
  const family = (
    name: string,
    type: 'counter' | 'gauge',
    help: string,
    value: (row: Row) => number,
  ): MetricFamily => ({
    name,
    type,
    help,
    parts: [{ labels: '', rows, value: value as (row: unknown) => number }],
  });
  return [
    family('headgate_listener_up', 'gauge', 'Whether the listener accepts connections', () => Number(isUp)),
    family(
      'headgate_listener_connections_total',
      'counter',
      'Connections, also those that were denied',
      (row) => row.flows,
    ),
    family('headgate_pool_active_members', 'gauge', 'Members that accept connections', (row) => row.members),
  ];
}
