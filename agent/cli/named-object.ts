// The object that an argument of a command means, as KIND/NAMESPACE/NAME or KIND/NAME: `HTTPRoute/shop/api`.

import { STATUS_KINDS } from '../kubernetes/status-kinds.ts';
import type { OwnerKey } from '../model/load-balancer.ts';
import { keyOf, NO_NAMESPACE, type OwnerKind } from '../model/names.ts';
import type { StatusName } from '../model/object-statuses.ts';
import type { Arguments } from './command.ts';
import { isName, namespaceOf } from './command-line.ts';

/** Key: a kind whose objects are load balancers themselves. */
const OWNERS: ReadonlyMap<string, OwnerKind> = new Map([
  ['Service', 'Service'],
  ['Gateway', 'Gateway'],
  ['IngressClass', 'Ingress'],
]);
const KINDS = [...new Set([...STATUS_KINDS, ...OWNERS.keys()])];

/** `HTTPRoute shop/api`; undefined if the argument has another form, or names a load balancer. */
export function objectFrom(given: Arguments): StatusName | undefined {
  const named = parse(given);
  if (named === undefined || OWNERS.has(named.kind)) return undefined;
  const { kind, namespace, name } = named;
  return kind === 'GatewayClass' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

/** The key of a load balancer; undefined if the argument has another form. */
export function keyOfObject(given: Arguments): OwnerKey | undefined {
  const named = parse(given);
  const kind = OWNERS.get(named?.kind ?? '');
  if (named === undefined || kind === undefined) return undefined;
  const namespace = kind === 'Ingress' ? NO_NAMESPACE : named.namespace;
  return keyOf({ kind, namespace, name: named.name });
}

function parse(given: Arguments) {
  const [first = '', ...rest] = (given.positionals[0] ?? '').split('/');
  // Namespaces are in lower case: `gateway/web` is a Service.
  const kind = KINDS.find((each) =>
    rest.length === 1 ? each === first : each.toLowerCase() === first.toLowerCase(),
  );
  const [namespace, name] = rest.length === 2 ? rest : [namespaceOf(given) ?? 'default', rest[0]];
  if (kind === undefined || rest.length > 2 || namespace === undefined || name === undefined)
    return undefined;
  return isName(namespace) && isName(name) ? { kind, namespace, name } : undefined;
}
