// The answer to the command `list`: all load balancers, or those of a namespace, the worst first. Reads the agent's parts;
// changes nothing.

import { ownerOf } from '../../model/names.ts';
import type { LoadBalancerRow } from './load-balancer-row.ts';
import type { LoadBalancerRows } from './load-balancer-rows.ts';
import type { StatusSources } from './status.ts';

export interface ListedLoadBalancer extends Omit<LoadBalancerRow, 'problems'> {
  /** The kind of its owner. */
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly problems: number;
  /** When the owner was created, ISO 8601; '' if it does not say so, like most manifests. */
  readonly created: string;
}

/** `namespace`: undefined for all. */
export async function listLoadBalancers(
  rows: Pick<LoadBalancerRows, 'update' | 'worstFirst'>,
  { cluster }: Pick<StatusSources, 'cluster'>,
  namespace: string | undefined,
): Promise<readonly ListedLoadBalancer[]> {
  await rows.update();
  const wanted = await rows.worstFirst(
    ({ key }) => namespace === undefined || ownerOf(key).namespace === namespace,
  );
  return wanted.map((row) => {
    const owner = ownerOf(row.key);
    return { ...row, ...owner, problems: row.problems.length, created: createdOf(row.key, cluster) };
  });
}

function createdOf(key: string, cluster: StatusSources['cluster']): string {
  const owner = cluster.ownerObject(key);
  const created = owner !== undefined && 'created' in owner ? owner.created : undefined;
  return created === undefined || !Number.isFinite(created) ? '' : new Date(created).toISOString();
}

/** Of one answer. */
const MAX_NAMES = 500;

/** The owners whose key begins with the text, served or not; for completion. */
export function namesOf({ desired }: Pick<StatusSources, 'desired'>, beginning: string): readonly string[] {
  const keys = [...desired.loadBalancers.keys(), ...desired.ignored.keys()];
  return keys
    .filter((key) => key.startsWith(beginning))
    .sort()
    .slice(0, MAX_NAMES);
}

/** The namespaces of all owners that begin with the text; for completion. */
export function namespacesOf(
  { desired }: Pick<StatusSources, 'desired'>,
  beginning: string,
): readonly string[] {
  const keys = [...desired.loadBalancers.keys(), ...desired.ignored.keys()];
  const namespaces = new Set(keys.map((key) => ownerOf(key).namespace));
  return [...namespaces]
    .filter((each) => each.startsWith(beginning))
    .sort()
    .slice(0, MAX_NAMES);
}
