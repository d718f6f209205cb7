// Whose objects cause the reload of a load balancer, so that each namespace has its share of reloads. Pure.

import type { LoadBalancer } from '../model/load-balancer.ts';
import { ownerOf } from '../model/names.ts';

/**
 * The namespaces whose users or keys of tokens differ, because routes of many namespaces share a Gateway or a class of Ingresses;
 * otherwise that of the owner.
 */
export function causersOf(
  before: LoadBalancer | undefined,
  after: LoadBalancer | undefined,
  key: string,
): ReadonlySet<string> {
  const [old, now] = [listsOf(before), listsOf(after)];
  const differing = [...new Set([...old.keys(), ...now.keys()])].filter(
    (name) => old.get(name) !== now.get(name),
  );
  const namespaces = new Set(differing.map(namespaceOf));
  return before === undefined || after === undefined || namespaces.size === 0
    ? new Set([ownerOf(key).namespace])
    : namespaces;
}

/** Name to fingerprint. */
function listsOf(loadBalancer: LoadBalancer | undefined): ReadonlyMap<string, string> {
  const lists = (loadBalancer?.listeners ?? []).flatMap(({ userLists = [], tokenKeys = [] }) => [
    ...userLists,
    // Keys behind a URL are of no namespace.
    ...tokenKeys.filter(({ name }) => !name.startsWith('jwks ')),
  ]);
  return new Map(lists.map(({ name, fingerprint }) => [name, fingerprint]));
}

/** `name`: `secret default/users`, `configmap default/keys`. */
function namespaceOf(name: string): string {
  return name.replace(/^[a-z]+ /, '').split('/', 1)[0] ?? '';
}

/** Ends at the first load balancer of a second namespace. */
export function isOfOneNamespace(loadBalancers: Iterable<LoadBalancer>): boolean {
  let first: string | undefined;
  for (const { namespace } of loadBalancers) {
    first ??= namespace;
    if (namespace !== first) return false;
  }
  return true;
}
