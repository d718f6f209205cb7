// The answer to the command `list`: all load balancers, or those of a namespace, the worst first. Reads the agent's parts;
// changes nothing.

import { inNaturalOrder } from '../../base/natural-order.ts';
import { ownerOf } from '../../model/names.ts';
import { subjectOfName } from '../../model/object-statuses.ts';
import type { LoadBalancerSummaries } from './load-balancer-summaries.ts';
import type { LoadBalancerSummary } from './load-balancer-summary.ts';
import { isOfNamespace } from './of-namespace.ts';
import type { StatusSources } from './status.ts';

export interface ListedLoadBalancer extends Omit<LoadBalancerSummary, 'problems' | 'poolProblems'> {
  /** The kind of its owner. */
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Its own, and those of the pools of its routes. */
  readonly problems: number;
  /** When the owner was created, ISO 8601; '' if it does not say so, like most manifests. */
  readonly created: string;
}

export interface ListOptions {
  /** undefined for all; those whose routes send to a pool of the namespace are among its load balancers. */
  readonly namespace: string | undefined;
  /** The pools of routes, too, whose members count in the rows of the load balancers that send to them. */
  readonly hasPools: boolean;
}

export async function listLoadBalancers(
  rows: Pick<LoadBalancerSummaries, 'update' | 'worstFirst'>,
  { cluster, desired }: Pick<StatusSources, 'cluster' | 'desired'>,
  { namespace, hasPools }: ListOptions,
): Promise<readonly ListedLoadBalancer[]> {
  await rows.update();
  const wanted = await rows.worstFirst(
    ({ key }) =>
      isOfNamespace(key, namespace ?? '', desired.poolUses) && (hasPools || ownerOf(key).kind !== 'Pool'),
  );
  return wanted.map(({ problems, poolProblems, ...row }) => ({
    ...row,
    ...ownerOf(row.key),
    problems: problems.length + poolProblems,
    created: createdOf(row.key, cluster),
  }));
}

function createdOf(key: string, cluster: StatusSources['cluster']): string {
  const owner = cluster.ownerObject(key);
  const created = owner !== undefined && 'created' in owner ? owner.created : undefined;
  return created === undefined || !Number.isFinite(created) ? '' : new Date(created).toISOString();
}

/** The most names in one answer. */
const MAX_NAMES = 500;

/**
 * The load balancers whose key begins with the text, served or not, and the routes as `HTTPRoute/shop/api`; for completion.
 * Services that are not of this agent would be most of a cluster's.
 */
export function namesOf({ desired }: Pick<StatusSources, 'desired'>, beginning: string): readonly string[] {
  const routes: string[] = [];
  for (const name of desired.statuses.names()) {
    const { kind, namespace, name: own } = subjectOfName(name);
    if (kind.endsWith('Route') || kind === 'Ingress') routes.push(`${kind}/${namespace}/${own}`);
  }
  return [...desired.loadBalancers.keys(), ...routes]
    .filter((name) => name.startsWith(beginning))
    .sort(inNaturalOrder)
    .slice(0, MAX_NAMES);
}

/** The namespaces of all load balancers that begin with the text; for completion. */
export function namespacesOf(
  { desired }: Pick<StatusSources, 'desired'>,
  beginning: string,
): readonly string[] {
  const keys = [...desired.loadBalancers.keys()];
  const namespaces = new Set(keys.map((key) => ownerOf(key).namespace));
  return [...namespaces]
    .filter((each) => each.startsWith(beginning))
    .sort()
    .slice(0, MAX_NAMES);
}
