// How one load balancer is doing: its health, what is wrong with it, and which of its listeners are served. `why` and
// the status page are projections of it. Reads what the dataplane and the announcer know; changes nothing.

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
  /** Names of the listeners at which connections are taken and reach a member. */
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
    // While all checks fail, all members get connections as if they were up, unless the pool rejects them.
    const hasMember = members.some(takesConnections) || (status === 'ERROR' && pool.whenAllDown === 'serve');
    if (hasMember && dataplane.serves(name)) served.add(name);
  }
  const verdict =
    served.size === 0 ? 'not served' : served.size < listeners.length ? 'served in part' : 'served';
  return { health, problems: problemsOf(loadBalancer, sources, health.problems), served, verdict };
}

/** All problems; `ofHealth`: what health checks found, as the operating status says it. */
export function problemsOf(
  loadBalancer: LoadBalancer,
  sources: ViewSources,
  ofHealth: readonly Problem[],
): readonly Problem[] {
  return [...loadBalancer.problems, ...foundProblems(loadBalancer, sources, ofHealth)];
}

/** Those that this host found, without those of the objects themselves. */
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
