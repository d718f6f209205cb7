// The metrics of connections that pods open, by VIP. Pure.

import { familyOf, type MetricFamily } from '../../base/metric-family.ts';
import { loadBalancerSeries } from '../../dataplane/series-labels.ts';
import type { OwnerKey } from '../../model/load-balancer.ts';
import type { VipCounts } from './egress-text.ts';

export interface EgressNumbers {
  /** The number of each Service at each of its VIPs. */
  readonly pods: Iterable<{ readonly owner: OwnerKey; readonly vip: string; readonly pods: number }>;
  /** By VIP, until now. */
  readonly counts: ReadonlyMap<string, VipCounts>;
  /** Whether they have bytes. */
  readonly countsTraffic: boolean;
}

export function egressFamilies({ pods, counts, countsTraffic }: EgressNumbers): readonly MetricFamily[] {
  const ofServices = Array.from(pods, ({ owner, vip, pods: number }) => {
    return { labels: `${loadBalancerSeries(owner)},vip="${vip}"`, number };
  });
  const rows = Array.from(counts, ([vip, count]) => ({ labels: `vip="${vip}"`, count }));
  const counter = (name: string, help: string, value: (count: VipCounts) => number): MetricFamily =>
    familyOf(`headgate_egress_${name}_total`, 'counter', help, rows, (row) => value(row.count));
  return [
    familyOf(
      'headgate_egress_pods',
      'gauge',
      'Pods of the Service whose connections leave from the VIP',
      ofServices,
      (row) => row.number,
    ),
    counter('connections', 'Connections of pods that left from the VIP', ({ opened }) => opened.packets),
    ...(countsTraffic
      ? [
          counter('sent_bytes', 'Bytes of pods that left from the VIP', ({ sent }) => sent.bytes),
          counter('received_bytes', 'Bytes of answers to the VIP for pods', ({ received }) => received.bytes),
        ]
      : []),
  ];
}
