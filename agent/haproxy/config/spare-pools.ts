// Backends without servers, of which each stands for the pool of a new route until the next reload, so that the route needs
// none. All are alike: what only a reload can change is as in most pools of the file. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { spareBackend } from '../../model/names.ts';
import { isRoutePool, shapeOf } from './listener-config.ts';

/** New pools between two reloads, of which each costs HAProxy some 10 KB. */
export const SPARES = 16;

/** A pool that the spare backends of a file with these load balancers are like; undefined if the file has none. */
export function spareProfile(loadBalancers: Iterable<LoadBalancer>): Listener | undefined {
  const found = new Map<string, { readonly listener: Listener; count: number }>();
  for (const { listeners } of loadBalancers)
    for (const listener of listeners) {
      const shape = spareShape(listener);
      if (shape === '') continue;
      const known = found.get(shape);
      if (known === undefined) found.set(shape, { listener, count: 1 });
      else known.count++;
    }
  const [most] = [...found.values()].sort((a, b) => b.count - a.count);
  return most?.listener;
}

/** True if a spare backend that is like this pool can serve the other one. */
export function isLikeSpare(profile: Listener, listener: Listener): boolean {
  return spareShape(listener) !== '' && spareShape(listener) === spareShape(profile);
}

/** The spare backends as listeners, in the order of the file. */
export function spareListeners(profile: Listener): readonly Listener[] {
  const pool = { ...profile.pool, members: [] };
  return Array.from({ length: SPARES }, (_, at) => ({ ...profile, name: spareBackend(at + 1), pool }));
}

/**
 * '' for a pool that needs more than servers: its cookies and its stick-table have its name, its certificates are read and its
 * checks are kept over a reload by name.
 */
const spareShape = memoByIdentity((listener: Listener): string => {
  const { cookie, persistence, tls, monitor, clients } = listener.pool;
  const isPlain =
    cookie === '' && persistence === 0 && tls === undefined && monitor === undefined && clients === undefined;
  return isRoutePool(listener) && isPlain ? shapeOf(listener) : '';
});
