// From objects to the desired state: brings the load balancers of changed owners up to date, and those of the owners
// that gain or lose a port by it. Changes the desired state and nothing else: no clock, no socket, no file.

import { sameValue } from '../base/same-value.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { OwnerKey } from '../model/load-balancer.ts';
import { type OwnerKind, ownerOf } from '../model/names.ts';
import type { Translation, Translator } from './translator.ts';

export type Translators = Readonly<Partial<Record<OwnerKind, Translator>>>;

/** Returns the keys whose load balancer changed. */
export function translateChanged(
  desired: DesiredState,
  translators: Translators,
  keys: Iterable<OwnerKey>,
): ReadonlySet<OwnerKey> {
  const dirty = new Set(keys);
  for (const key of [...dirty]) {
    const { created, ports } = translatorOf(key, translators).ports(key);
    for (const other of desired.portOwners.update(key, created, ports)) dirty.add(other);
  }
  const changed = new Set<OwnerKey>();
  for (const key of dirty) {
    const before = desired.loadBalancers.get(key);
    const translation = translatorOf(key, translators).translate(key, before);
    if (put(desired, key, translation)) changed.add(key);
  }
  return changed;
}

function translatorOf(key: OwnerKey, translators: Translators): Translator {
  const { kind } = ownerOf(key);
  const translator = translators[kind];
  if (translator === undefined) throw new Error(`There is no translator for ${kind} "${key}"`);
  return translator;
}

/** True if the load balancer is another value than before. */
function put(desired: DesiredState, key: OwnerKey, { result, reads }: Translation): boolean {
  desired.dependents.set(key, reads);
  if (result?.kind === 'Ignored') desired.ignored.set(key, result);
  else desired.ignored.delete(key);
  if (result?.kind !== 'LoadBalancer') return desired.loadBalancers.delete(key);
  const before = desired.loadBalancers.get(key);
  if (before !== undefined && sameValue(before, result)) return false;
  desired.loadBalancers.set(key, result);
  return true;
}
