// The rules of a pool: which Services may have its addresses. Pure.

import { quote } from '../base/quote.ts';
import type { AddressPool, Selector } from '../kubernetes/address-pool.ts';
import type { AddressRequest } from './request.ts';

type Requester = Pick<AddressRequest, 'namespace' | 'labels' | 'pool'>;

/** Completes `Pool "a" `; undefined if the Service may have addresses, whether or not the pool gives any now. */
export function whyNotAllowed(pool: AddressPool, requester: Requester): string | undefined {
  if (requester.pool !== undefined && requester.pool !== pool.name)
    return `is not the one that the Service asks for, ${quote(requester.pool)}`;
  if (pool.namespaces.length > 0 && !pool.namespaces.includes(requester.namespace))
    return `is not for namespace ${quote(requester.namespace)}`;
  if (!matches(pool.selector, requester.labels)) return "is not for Services with this Service's labels";
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

/** https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ */
export function matches(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels)) {
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return false;
  }
  return selector.matchExpressions.every((expression) => meets(expression, labels));
}

function meets(
  { key, operator, values }: Selector['matchExpressions'][number],
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
  }
}
