// Updates the desired state from objects: translates the changed owners, and those that gain or lose a port, a member or a part
// of their share of HAProxy because of the change. A VIP is never a member.
// One translator for each kind of owner makes the load balancers. Changes the desired state only.

import { sameValue } from '../base/same-value.ts';
import type { Dependency, DesiredState } from '../model/desired-state.ts';
import type { Ignored, LoadBalancer, OwnerKey } from '../model/load-balancer.ts';
import { memberName, type OwnerKind, ownerOf } from '../model/names.ts';
import type { ObjectStatus } from '../model/object-status.ts';
import type { PoolUse } from '../model/pool-uses.ts';
import type { PortRequest } from '../model/port-owners.ts';
import { needsOf, withinShares } from './fair-share.ts';

/** The ports of an owner that is not served. */
export const NO_PORTS: RequestedPorts = { created: 0, ports: [] };

/** Pure: reads the store of objects and the settings. */
export interface Translator {
  /** Called before any owner is translated, because owners compete for ports. */
  ports(key: OwnerKey): RequestedPorts;
  /** `before`: the load balancer that this owner has now. */
  translate(key: OwnerKey, before: LoadBalancer | undefined): Translation;
}

export interface RequestedPorts {
  /** When the owner was created, milliseconds since the epoch; Infinity if unknown. */
  readonly created: number;
  readonly ports: readonly PortRequest[];
}

export interface Translation {
  /** undefined if the owner does not exist. */
  readonly result: LoadBalancer | Ignored | undefined;
  /** The objects that were read: a change of one of them makes the owner dirty. */
  readonly reads: readonly Dependency[];
  /** The pools that its routes send to, each once. */
  readonly pools?: readonly PoolUse[];
  /** Statuses of the objects that were read, at most one for each; an unchanged one keeps its identity. */
  readonly statuses?: readonly ObjectStatus[];
}

/** Owners of a kind without one are not served. */
export type Translators = Readonly<Partial<Record<OwnerKind, Translator>>>;

/** Returns the keys of the load balancers that changed, and of owners that give other statuses. */
export function translateChanged(
  desired: DesiredState,
  translators: Translators,
  keys: Iterable<OwnerKey>,
): ReadonlySet<OwnerKey> {
  const dirty = new Set([...keys].filter((key) => translators[ownerOf(key).kind] !== undefined));
  const opened = new Set<string>();
  for (const key of [...dirty]) {
    const { created, ports } = translatorOf(key, translators).ports(key);
    for (const port of ports)
      if (desired.portOwners.ownerOf(port) === undefined) opened.add(memberName(port.address, port.port));
    for (const other of desired.portOwners.update(key, created, ports)) dirty.add(other);
  }
  desired.portOwners.settle();
  for (const key of [...withMembers(desired, opened), ...withoutVips(desired, dirty)]) dirty.add(key);
  const changed = new Set<OwnerKey>();
  /** After the owners whose routes decide which pools there are. */
  const pools = new Set<OwnerKey>();
  const translate = (key: OwnerKey): void => {
    const before = desired.loadBalancers.get(key);
    const translation = translatorOf(key, translators).translate(key, before);
    for (const pool of desired.poolUses.update(key, translation.pools ?? NO_POOLS)) pools.add(pool);
    if (put(desired, key, translation)) changed.add(key);
    if (desired.statuses.update(key, translation.statuses ?? NO_STATUSES)) changed.add(key);
  };
  for (const key of dirty) {
    if (ownerOf(key).kind === 'Pool') pools.add(key);
    else translate(key);
  }
  for (const key of pools) translate(key);
  const { servers, checks } = desired.shares;
  for (const key of new Set([...servers.settle(), ...checks.settle()])) translate(key);
  return changed;
}

/** Owners that have one of these members. Looks at all members, but only if an address and port is new as a listener's. */
function withMembers({ loadBalancers }: DesiredState, names: ReadonlySet<string>): readonly OwnerKey[] {
  if (names.size === 0) return [];
  const owners: OwnerKey[] = [];
  for (const [key, { listeners }] of loadBalancers)
    if (listeners.some(({ pool }) => pool.members.some(({ name }) => names.has(name)))) owners.push(key);
  return owners;
}

/** Owners that were refused a member at a VIP of `keys` at which no load balancer listens any more. */
function withoutVips(desired: DesiredState, keys: ReadonlySet<OwnerKey>): ReadonlySet<OwnerKey> {
  const closed: Dependency[] = [];
  for (const key of keys) {
    for (const { addresses, protocol, port } of desired.loadBalancers.get(key)?.listeners ?? []) {
      for (const address of addresses)
        if (desired.portOwners.ownerOf({ address, protocol, port }) === undefined)
          closed.push(`vip ${address}`);
    }
  }
  return desired.dependents.of(closed);
}

const NO_POOLS: readonly PoolUse[] = [];
const NO_STATUSES: readonly ObjectStatus[] = [];

function translatorOf(key: OwnerKey, translators: Translators): Translator {
  const { kind } = ownerOf(key);
  const translator = translators[kind];
  if (translator === undefined) throw new Error(`There is no translator for ${kind} "${key}"`);
  return translator;
}

/** True if the load balancer has changed. */
function put(desired: DesiredState, key: OwnerKey, { result, reads }: Translation): boolean {
  desired.dependents.set(key, reads);
  if (result?.kind === 'Ignored') desired.ignored.set(key, result);
  else desired.ignored.delete(key);
  const { servers, checks } = desired.shares;
  const needs = needsOf(result);
  const { namespace } = ownerOf(key);
  servers.update(namespace, key, needs.servers);
  checks.update(namespace, key, needs.checks);
  if (result?.kind !== 'LoadBalancer') return desired.loadBalancers.delete(key);
  const now = withinShares(result, desired.shares);
  const before = desired.loadBalancers.get(key);
  if (before !== undefined && sameValue(before, now)) return false;
  desired.loadBalancers.set(key, now);
  return true;
}
