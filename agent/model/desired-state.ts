// The desired state: the load balancers that the objects ask for, and what is needed to change them one by one.
// Only translation changes it.

import { Dependents } from './dependencies.ts';
import type { Ignored, LoadBalancer, Member, OwnerKey } from './load-balancer.ts';
import { PortOwners } from './port-owners.ts';

export interface DesiredState {
  readonly loadBalancers: Map<OwnerKey, LoadBalancer>;
  readonly ignored: Map<OwnerKey, Ignored>;
  readonly dependents: Dependents;
  readonly portOwners: PortOwners;
  /** By owner and listener: the members that pools had when the last agent ended (state/kept-members.ts). */
  readonly remembered: Map<OwnerKey, Map<string, readonly Member[]>>;
}

export function emptyDesiredState(): DesiredState {
  return {
    loadBalancers: new Map(),
    ignored: new Map(),
    dependents: new Dependents(),
    portOwners: new PortOwners(),
    remembered: new Map(),
  };
}
