// The verdicts of load balancers as metrics: how many have each, and a sample for each load balancer that is not fully
// served. Those that are served have no sample, because nearly all are.

import type { Verdict } from '../../../health/page-model.ts';
import type { MetricFamily } from '../../base/metric-family.ts';
import { loadBalancerSeries } from '../../dataplane/series-labels.ts';
import type { OwnerKey } from '../../model/load-balancer.ts';

export interface VerdictSources {
  readonly counts: Readonly<Record<Verdict, number>>;
  /** Load balancers that are not served, or not fully. */
  unserved(): Iterable<{ readonly key: OwnerKey; readonly verdict: Verdict }>;
}

export function verdictFamilies(rows: VerdictSources): readonly MetricFamily[] {
  const byVerdict = Map.groupBy(rows.unserved(), ({ verdict }) => verdict);
  return [
    {
      name: 'headgate_verdicts',
      type: 'gauge',
      help: 'Load balancers by verdict, as in "headgate why"',
      parts: Object.entries(rows.counts).map(([verdict, count]) => ({
        labels: `verdict="${verdict}"`,
        rows: [{ labels: '' }],
        value: () => count,
      })),
    },
    {
      name: 'headgate_load_balancer_verdict',
      type: 'gauge',
      help: 'Load balancer that is not served, or not fully, by verdict: 1 for its present verdict',
      parts: Array.from(byVerdict, ([verdict, all]) => ({
        labels: `verdict="${verdict}"`,
        rows: all.map(({ key }) => ({ labels: loadBalancerSeries(key) })),
        value: () => 1,
      })),
    },
  ];
}
