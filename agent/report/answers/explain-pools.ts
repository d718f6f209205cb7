// The pools of a rule for the command `why`: their weights, and how many members of them take requests. Reads only.

import { ownerOfListener } from '../../model/names.ts';
import type { RouteRule, WeightedBackend } from '../../model/routes.ts';
import { takesConnections } from '../operating/load-balancer-view.ts';
import { operatingStatus } from '../operating/operating-status.ts';
import { poolName } from './route-words.ts';
import type { StatusSources } from './status.ts';

export interface PoolExplanation {
  /** As `why` takes the owner, with the port; '' for a reference to what does not exist, or is not permitted. */
  readonly name: string;
  readonly weight: number;
  readonly ready: number;
  readonly members: number;
  /** CIDRs of the clients that NetworkPolicies let in; absent: all. */
  readonly clients?: readonly string[];
}

export function poolsOf({ action }: RouteRule, sources: StatusSources): readonly PoolExplanation[] {
  return action.kind === 'forward' ? poolsOfBackends(action.backends, sources) : [];
}

export function poolsOfBackends(
  backends: readonly Pick<WeightedBackend, 'pool' | 'weight'>[],
  sources: StatusSources,
): readonly PoolExplanation[] {
  return backends.map((backend) => {
    const { pool = '', weight } = backend;
    const loadBalancer = sources.desired.loadBalancers.get(ownerOfListener(pool));
    const status =
      loadBalancer &&
      operatingStatus(loadBalancer, sources.dataplane).listeners.find(({ name }) => name === pool);
    const members = status?.members ?? [];
    const clients = loadBalancer?.listeners.find(({ name }) => name === pool)?.pool.clients;
    return {
      name: poolName(backend) ?? '',
      weight,
      ready: members.filter(takesConnections).length,
      members: members.length,
      ...(clients && { clients }),
    };
  });
}
