// What cannot be told of two states, because clients reach it in neither: a changed load balancer without an address, and a Gateway
// or IngressClass that its state does not serve. Pure.

import { sameValue } from '../../base/same-value.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import { objectOf, ownerOf } from '../../model/names.ts';

type State = Pick<DesiredState, 'loadBalancers' | 'ignored'>;

/** `IngressClass edge has no address`, sorted. */
export function uncompared(before: State, after: State): readonly string[] {
  const found = new Set<string>();
  for (const [own, other] of [
    [before, after],
    [after, before],
  ] as const) {
    for (const [key, loadBalancer] of own.loadBalancers)
      if (
        loadBalancer.vips.length === 0 &&
        ownerOf(key).kind !== 'Pool' &&
        !sameValue(loadBalancer, other.loadBalancers.get(key))
      )
        found.add(`${objectOf(key)} has no address`);
    for (const [key, { reason }] of own.ignored)
      if (ownerOf(key).kind !== 'Service' && other.ignored.get(key)?.reason !== reason)
        found.add(`${objectOf(key)} is not served: ${reason}`);
  }
  return [...found].sort();
}
