// The view of one load balancer: its operating status, its problems, and the verdict. The commands `why` and `list`,
// the status page, the log and the status in the cluster are projections of it. Reads only.

import type { Verdict } from '../../../health/page-model.ts';
import type { DataplaneFacts } from '../../dataplane/dataplane.ts';
import type { LoadBalancer, Problem } from '../../model/load-balancer.ts';
import type { Announcer } from '../../vips/announcer.ts';
import { type ListenerStatus, type LoadBalancerStatus, operatingStatus } from './operating-status.ts';

export interface ViewSources {
  readonly dataplane: DataplaneFacts;
  /** undefined if this host announces nothing. */
  readonly announcer: Pick<Announcer, 'problemsOf'> | undefined;
}

export interface LoadBalancerView {
  readonly health: LoadBalancerStatus;
  readonly problems: readonly Problem[];
  readonly verdict: Verdict;
}

export function viewOf(loadBalancer: LoadBalancer, sources: ViewSources): LoadBalancerView {
  const health = operatingStatus(loadBalancer, sources.dataplane);
  const verdicts = health.listeners.map((status, at) =>
    verdictOf(status, loadBalancer.listeners[at]?.routing !== undefined, sources.dataplane),
  );
  return { health, problems: problemsOf(loadBalancer, sources, health.problems), verdict: ofAll(verdicts) };
}

/** Of one listener; never `not served` while the Service's condition Programmed is True. */
function verdictOf(
  { name, pool, members }: ListenerStatus,
  hasRoutes: boolean,
  dataplane: DataplaneFacts,
): Verdict {
  if (!dataplane.serves(name)) return 'not served';
  if (hasRoutes) return 'served';
  if (pool === 'ERROR') return 'members down';
  return members.some(takesConnections) ? 'served' : 'no ready member';
}

const UNSERVED: readonly Verdict[] = ['not served', 'members down', 'no ready member'];

/** The verdict that all listeners have; if they differ `served in part`, or the worst if none is served. */
function ofAll(verdicts: readonly Verdict[]): Verdict {
  const [first = 'not served'] = verdicts;
  if (verdicts.every((each) => each === first)) return first;
  if (verdicts.includes('served')) return 'served in part';
  return UNSERVED.find((each) => verdicts.includes(each)) ?? first;
}

/** All problems; `ofHealth`: those of the operating status. */
export function problemsOf(
  loadBalancer: LoadBalancer,
  sources: ViewSources,
  ofHealth: readonly Problem[],
): readonly Problem[] {
  return [...loadBalancer.problems, ...foundProblems(loadBalancer, sources, ofHealth)];
}

/** The problems that this host has found, without those of the objects themselves. */
export function foundProblems(
  loadBalancer: LoadBalancer,
  { dataplane, announcer }: ViewSources,
  ofHealth: readonly Problem[],
): readonly Problem[] {
  return [...dataplane.problemsOf(loadBalancer), ...(announcer?.problemsOf(loadBalancer) ?? []), ...ofHealth];
}

export function takesConnections({ status }: { readonly status: LoadBalancerStatus['status'] }): boolean {
  return status === 'ONLINE' || status === 'NO_MONITOR';
}
