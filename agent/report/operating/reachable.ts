// Whether clients reach a listener by this host at all. Pure.

import type { Listener, LoadBalancer, ProblemReason } from '../../model/load-balancer.ts';
import type { Announcer } from '../../vips/announcer.ts';

/** What makes VIPs reachable, or finds out which are; undefined if nothing is known of that. */
export type Reach = Pick<Announcer, 'problemsOf'> | undefined;

/** What keeps clients from an address. */
export const UNREACHED: readonly ProblemReason[] = ['AddressUnavailable', 'AddressNotAnnounced'];

/** False if clients reach the listener at none of its addresses by this host. */
export function isReachable(
  loadBalancer: Pick<LoadBalancer, 'key' | 'vips' | 'listeners'>,
  listener: Listener,
  reach: Reach,
): boolean {
  if (reach === undefined) return true;
  const own = loadBalancer.vips.filter(({ address }) => listener.addresses.includes(address));
  const isUnavailable = (vip: LoadBalancer['vips'][number]) =>
    reach
      .problemsOf({ ...loadBalancer, vips: [vip], listeners: [listener] })
      .some(({ reason }) => UNREACHED.includes(reason));
  return own.length === 0 || !own.every(isUnavailable);
}
