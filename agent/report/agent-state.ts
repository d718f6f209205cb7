// What the agent's gauges show, read from its parts at each scrape.

import type { AgentState } from '../../health/metrics.ts';
import type { Changes } from '../changes.ts';
import type { ApiSource } from '../kubernetes/api/api-source.ts';
import type { ClusterWriters } from './cluster-writers.ts';
import { problemCounts } from './problem-log.ts';
import { allProblems, type StatusSources } from './status.ts';

export interface StateSources {
  readonly known: StatusSources;
  readonly changes: Changes;
  readonly sources: { readonly api: ApiSource | undefined };
  /** undefined where there is no cluster. */
  readonly writers: ClusterWriters | undefined;
}

export function agentState({ known, changes, sources, writers }: StateSources): AgentState {
  const { cluster, desired, dataplane, operating, announcer, pair, addresses } = known;
  return {
    objects: cluster.counts(),
    loadBalancers: desired.loadBalancers.size,
    ignoredServices: desired.ignored.size,
    waiting: changes.waiting,
    problems: problemCounts(allProblems(known)),
    haproxy: dataplane.status(),
    operating: operating.counts,
    api: writers && { ...writers.leadership(), watches: sources.api?.status() ?? [] },
    vrrp: announcer?.status(),
    pair: pair?.status(),
    addresses: addresses.status(),
  };
}
