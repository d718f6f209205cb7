// Whether a Service may have addresses of a pool. Pure.

import { quote } from '../base/quote.ts';
import type { AddressPool, Selector } from '../kubernetes/address-pool.ts';
import type { AddressRequest } from './request.ts';

type Asker = Pick<AddressRequest, 'namespace' | 'labels' | 'pool'>;

/** Completes `Pool "a" `; undefined where it may. Says nothing of whether the pool gives anything now. */
export function whyNotAllowed(pool: AddressPool, asker: Asker): string | undefined {
  if (asker.pool !== undefined && asker.pool !== pool.name)
    return `is not the one that the Service asks for, ${quote(asker.pool)}`;
  if (pool.namespaces.length > 0 && !pool.namespaces.includes(asker.namespace))
    return `is not for namespace ${quote(asker.namespace)}`;
  if (!matches(pool.selector, asker.labels)) return "is not for Services with this Service's labels";
  return undefined;
}

/** As whyNotAllowed(), and whether it gives addresses to who does not ask for a certain one. */
export function whyNothingNew(pool: AddressPool, asker: Asker): string | undefined {
  const why = whyNotAllowed(pool, asker);
  if (why !== undefined) return why;
  if (pool.draining) return 'is draining';
  if (!pool.auto && asker.pool !== pool.name) return 'gives addresses on request only';
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
