// The rules of a pool: which Services, Gateways and IngressClasses may have its addresses. Pure.

import { quote } from '../base/quote.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import { faultWords, whyNotPort } from '../kubernetes/allowed-rule.ts';
import { matches } from '../kubernetes/label-selector.ts';
import { kindInWords, NO_NAMESPACE } from '../model/names.ts';
import type { AddressRequest } from './request.ts';

type Requester = Pick<AddressRequest, 'key' | 'namespace' | 'labels' | 'namespaceLabels' | 'pool' | 'ports'>;

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
  return whyNotNamespace(pool, requester);
}

/** As whyNotAllowed(), by the rule `allowed` without its ports. */
function whyNotNamespace({ allowed }: AddressPool, requester: Requester): string | undefined {
  if (allowed === undefined) return undefined;
  const { fault, namespaces, namespaceSelector: selector } = allowed;
  if (fault !== '') return faultWords(fault);
  const { namespace, namespaceLabels } = requester;
  if ((namespaces.length === 0 && selector === undefined) || namespaces.includes(namespace)) return undefined;
  const rule =
    selector === undefined
      ? 'allowed.namespaces'
      : namespaces.length === 0
        ? 'allowed.namespaceSelector'
        : 'allowed.namespaces, allowed.namespaceSelector';
  if (namespace === NO_NAMESPACE)
    return `is only for namespaces (${rule}), and an ${kindInWords(requester.key)} has none`;
  if (selector !== undefined && namespaceLabels === undefined)
    return `is not for namespace ${quote(namespace)} as long as its labels are not known (${rule})`;
  if (selector !== undefined && namespaceLabels !== undefined && matches(selector, namespaceLabels))
    return undefined;
  return `is not for namespace ${quote(namespace)} (${rule})`;
}

/** The first port that the pool does not allow, as whyNotAllowed(). */
export function whyNotPorts({ allowed }: AddressPool, { ports }: Requester): string | undefined {
  if (allowed === undefined) return undefined;
  for (const port of ports) {
    const why = whyNotPort(allowed, port);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** Why an owner that has nothing of the pool gets nothing. */
export function whyNotNew(pool: AddressPool, requester: Requester): string | undefined {
  return whyNotAllowed(pool, requester) ?? whyNotPorts(pool, requester);
}

/** As whyNotNew(), and whether the pool gives addresses to requests without a certain address. */
export function whyNothingNew(pool: AddressPool, requester: Requester): string | undefined {
  const why = whyNotNew(pool, requester);
  if (why !== undefined) return why;
  if (pool.draining) return 'is draining';
  if (!pool.auto && requester.pool !== pool.name) return 'gives addresses on request only';
  return undefined;
}
