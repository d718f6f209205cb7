// The table of routes: every path of Octavia's amphora API 1.0.

import type { Amphora } from './amphora.ts';
import { listenerRoutes } from './listener-routes.ts';
import { loadBalancerRoutes } from './load-balancer-routes.ts';
import { machineRoutes } from './machine-routes.ts';
import { networkRoutes } from './network-routes.ts';
import type { Route } from './router.ts';
import { vrrpRoutes } from './vrrp-routes.ts';

export function routesOf(amphora: Amphora): readonly Route[] {
  return [
    ...machineRoutes(amphora),
    ...loadBalancerRoutes(amphora),
    ...listenerRoutes(amphora),
    ...networkRoutes(amphora),
    ...vrrpRoutes(amphora),
  ];
}
