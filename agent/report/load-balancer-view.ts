// The view of one load balancer: its operating status, its problems, and the listeners that are served. The command `why`,
// the status page, the log and the status in the cluster are projections of it. Reads only.

import type { Verdict } from '../../health/page-model.ts';
import type { DataplaneFacts } from '../dataplane/dataplane.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { Announcer } from '../vips/announcer.ts';
import { type LoadBalancerStatus, operatingStatus } from './operating-status.ts';

export interface ViewSources {
  readonly dataplane: DataplaneFacts;
  /** undefined if this host announces nothing. */
  readonly announcer: Pick<Announcer, 'problemsOf'> | undefined;
}

export interface LoadBalancerView {
  readonly health: LoadBalancerStatus;
  readonly problems: readonly Problem[];
  /** Names of the listeners that accept connections and pass them to a member. */
  readonly served: ReadonlySet<string>;
  readonly verdict: Verdict;
}

export function viewOf(loadBalancer: LoadBalancer, sources: ViewSources): LoadBalancerView {
  const { dataplane } = sources;
  const { listeners } = loadBalancer;
  const health = operatingStatus(loadBalancer, dataplane);
  const served = new Set<string>();
  for (const [at, { name, pool }] of listeners.entries()) {
    const { members = [], pool: status } = health.listeners[at] ?? {};
    // A pool whose checks all fail sends connections to all members, unless it rejects them.
    const hasMember = members.some(takesConnections) || (status === 'ERROR' && pool.whenAllDown === 'serve');
    if (hasMember && dataplane.serves(name)) served.add(name);
  }
  const verdict =
    served.size === 0 ? 'not served' : served.size < listeners.length ? 'served in part' : 'served';
  return { health, problems: problemsOf(loadBalancer, sources, health.problems), served, verdict };
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
