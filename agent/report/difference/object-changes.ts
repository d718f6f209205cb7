// What comes, goes, moves or changes between two states: load balancers, ports, addresses, certificates and routes. Pure.

import { sameValue } from '../../base/same-value.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import { routeEntries } from '../answers/route-words.ts';
import { portsOf } from './port-access.ts';

export interface ObjectChange {
  readonly change: 'comes' | 'goes' | 'moves' | 'changes';
  /** `Service default/web`, `TCP port 80 of 192.0.2.10`, `192.0.2.10`. */
  readonly subject: string;
  /** What it was, and what it is; '' if there is nothing to say. */
  readonly detail: string;
}

export interface ObjectChanges {
  readonly addresses: readonly ObjectChange[];
  readonly ports: readonly ObjectChange[];
  readonly certificates: readonly ObjectChange[];
  readonly routes: readonly ObjectChange[];
  /** Members whose connections drain: they leave a pool that stays, or the pool goes. By load balancer. */
  readonly drains: readonly ObjectChange[];
}

type State = Pick<DesiredState, 'loadBalancers'>;

export function objectChanges(before: State, after: State): ObjectChanges {
  return {
    addresses: changesOf(addressesOf(before), addressesOf(after), (each) => each, 'moves'),
    ports: portChanges(before, after),
    certificates: changesOf(certificatesOf(before), certificatesOf(after), () => '', 'changes'),
    routes: changesOf(routesOf(before), routesOf(after), () => '', 'changes'),
    drains: drainsOf(before, after),
  };
}

function changesOf<T>(
  old: ReadonlyMap<string, T>,
  now: ReadonlyMap<string, T>,
  words: (value: T) => string,
  changed: 'moves' | 'changes',
): readonly ObjectChange[] {
  const changes: ObjectChange[] = [];
  for (const [subject, was] of old) {
    const is = now.get(subject);
    if (is === undefined) changes.push({ change: 'goes', subject, detail: words(was) });
    else if (!sameValue(was, is)) {
      const [from, to] = [words(was), words(is)];
      changes.push({ change: changed, subject, detail: from === to ? '' : `from ${from} to ${to}` });
    }
  }
  for (const [subject, is] of now)
    if (!old.has(subject)) changes.push({ change: 'comes', subject, detail: words(is) });
  return changes.sort((a, b) => a.subject.localeCompare(b.subject, 'en'));
}

/** By address: the objects that have it. */
function addressesOf({ loadBalancers }: State): ReadonlyMap<string, string> {
  const owners = new Map<string, string[]>();
  for (const { key, vips } of loadBalancers.values())
    for (const { address } of vips) {
      const there = owners.get(address);
      if (there === undefined) owners.set(address, [objectOf(key)]);
      else there.push(objectOf(key));
    }
  return new Map([...owners].map(([address, all]) => [address, all.sort().join(', ')]));
}

function portChanges(before: State, after: State): readonly ObjectChange[] {
  const words = (state: State): ReadonlyMap<string, string> =>
    new Map([...portsOf(state)].map(([port, { loadBalancer }]) => [port, objectOf(loadBalancer.key)]));
  return changesOf(words(before), words(after), (owner) => owner, 'moves');
}

/** By name: their fingerprints, also those for members. */
function certificatesOf({ loadBalancers }: State): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { listeners } of loadBalancers.values())
    for (const { tls, pool } of listeners) {
      const ofSections = tls?.sections?.flatMap(({ certificates }) => certificates) ?? [];
      const ofMembers = pool.tls?.certificate === undefined ? [] : [pool.tls.certificate];
      for (const { name, fingerprint } of [...(tls?.certificates ?? []), ...ofSections, ...ofMembers])
        found.set(`Secret ${name}`, fingerprint);
    }
  return found;
}

/** By route: all of its matches and rules, wherever they are attached. */
function routesOf(state: State): ReadonlyMap<string, readonly unknown[]> {
  const routes = new Map<string, unknown[]>();
  for (const { loadBalancer, section, host, entry } of routeEntries(state)) {
    const own = [loadBalancer.key, section, host, entry];
    const there = routes.get(entry.rule.route);
    if (there === undefined) routes.set(entry.rule.route, [own]);
    else there.push(own);
  }
  return routes;
}

function drainsOf(before: State, after: State): readonly ObjectChange[] {
  return [...before.loadBalancers.values()].flatMap((was): ObjectChange[] => {
    const is = after.loadBalancers.get(was.key);
    const left = was.listeners.flatMap((listener) => leavingMembers(listener, is));
    if (left.length === 0) return [];
    return [{ change: 'goes', subject: objectOf(was.key), detail: left.sort().join(', ') }];
  });
}

/** Addresses and ports of members that take no new connections any more. */
function leavingMembers({ name, pool }: Listener, is: LoadBalancer | undefined): readonly string[] {
  const stay = new Set(
    is?.listeners
      .find((each) => each.name === name)
      ?.pool.members.filter(({ state }) => state === 'ready')
      .map((each) => each.name),
  );
  return pool.members
    .filter((member) => member.state === 'ready' && !stay.has(member.name))
    .map(({ address, port }) => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`));
}
