// A real HAProxy with routes, and a member for each Service that they send to.

import type { ExecutionContext } from 'ava';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import type { RouteSection } from '../../../agent/model/routes.ts';
import { freePort } from '../basics/free-port.ts';
import { type Echo, startEcho } from '../traffic/echo.ts';
import type { Place } from '../traffic/traffic.ts';
import { gatewayOf, poolOf } from '../values/routes.ts';
import { startRendered } from './rendered-haproxy.ts';

/** A HAProxy with these routes, and a pool with one member for each Service that is named here. */
export async function routed(
  t: ExecutionContext,
  services: readonly string[],
  sections: readonly RouteSection[],
  onEcho?: (echo: Echo) => void,
  options: Parameters<typeof startRendered>[2] = {},
): Promise<Place> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const pools: LoadBalancer[] = [];
  for (const service of services) pools.push(poolOf(service, [await startEcho(t, service, onEcho)]));
  await startRendered(t, [gatewayOf(place, sections), ...pools], options);
  return place;
}
