// The rules of a pool: which Services, Gateways and IngressClasses may have its addresses. Pure.

import { quote } from '../base/quote.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import { matches } from '../kubernetes/label-selector.ts';
import { kindInWords, NO_NAMESPACE } from '../model/names.ts';
import type { AddressRequest } from './request.ts';

type Requester = Pick<AddressRequest, 'key' | 'namespace' | 'labels' | 'pool'>;

/** Completes `Pool "a" `; undefined if the requester may have addresses, whether or not the pool gives any now. */
export function whyNotAllowed(pool: AddressPool, requester: Requester): string | undefined {
  const kind = kindInWords(requester.key);
  if (requester.pool !== undefined && requester.pool !== pool.name)
    return `is not the one that the ${kind} asks for, ${quote(requester.pool)}`;
  if (pool.namespaces.length > 0 && requester.namespace === NO_NAMESPACE)
    return `is only for namespaces, and an ${kind} has none`;
  if (pool.namespaces.length > 0 && !pool.namespaces.includes(requester.namespace))
    return `is not for namespace ${quote(requester.namespace)}`;
  if (!matches(pool.selector, requester.labels)) return `is not for the labels of this ${kind}`;
  return undefined;
}

/** As whyNotAllowed(), and whether the pool gives addresses to requests without a certain address. */
export function whyNothingNew(pool: AddressPool, requester: Requester): string | undefined {
  const why = whyNotAllowed(pool, requester);
  if (why !== undefined) return why;
  if (pool.draining) return 'is draining';
  if (!pool.auto && requester.pool !== pool.name) return 'gives addresses on request only';
  return undefined;
}
