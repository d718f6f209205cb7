// What the agent's gauges show, read from its parts at each scrape.

import type { AgentState } from '../../health/metrics.ts';
import type { Changes } from '../changes.ts';
import type { ApiSource } from '../kubernetes/api/api-source.ts';
import { problemCounts } from './problem-log.ts';
import type { Reporter } from './reporter.ts';
import { allProblems, type StatusSources } from './status.ts';

export interface StateSources {
  readonly known: StatusSources;
  readonly changes: Changes;
  readonly sources: { readonly api: ApiSource | undefined };
  /** undefined where there is no cluster. */
  readonly reporter: Reporter | undefined;
}

export function agentState({ known, changes, sources, reporter }: StateSources): AgentState {
  const { cluster, model, haproxy, operating, keepalived, pair, addresses } = known;
  return {
    objects: cluster.counts(),
    loadBalancers: model.loadBalancers.size,
    ignoredServices: model.ignored.size,
    waiting: changes.waiting,
    problems: problemCounts(allProblems(known)),
    haproxy: haproxy.status(),
    operating: operating.counts,
    api: reporter && { ...reporter.leadership(), watches: sources.api?.status() ?? [] },
    vrrp: keepalived?.status(),
    pair: pair?.status(),
    addresses: addresses.status(),
  };
}
