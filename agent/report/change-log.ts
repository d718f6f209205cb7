// Logs what changes in load balancers: which appear, change and go, with their listeners, addresses and routes, and which ports
// have no ready member any more. Other changes of members are counted and logged once a minute.

import { type Clock, systemClock } from '../base/clock.ts';
import { LineBudget } from '../base/line-budget.ts';
import { sameValue } from '../base/same-value.ts';
import type { Log } from '../host/log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Listener, LoadBalancer, OwnerKey } from '../model/load-balancer.ts';
import { kindInWords, ownerOf } from '../model/names.ts';
import type { HostRoutes, RouteEntry } from '../model/routes.ts';
import type { ChangeObserver } from './change-observers.ts';

/** All messages; docs/operations.md lists them. */
export const MESSAGES = {
  began: 'The agent begins with these load balancers',
  'LoadBalancer added': 'A load balancer appeared',
  'LoadBalancer removed': 'A load balancer is gone',
  'Listener added': 'A listener appeared',
  'Listener changed': 'A listener changed',
  'Listener removed': 'A listener is gone',
  'Address added': 'An address appeared',
  'Address removed': 'An address is gone',
  'Route added': 'A route appeared',
  'Route changed': 'A route changed',
  'Route removed': 'A route is gone',
  'Pool added': 'A pool of routes appeared',
  'Pool removed': 'A pool of routes is gone',
  'Pool emptied': 'A port has no ready member',
  'Pool filled': 'A port has a ready member again',
  'Member changed': 'Members changed in the last minute',
  more: 'There were more changes in the last minute than the log shows',
} as const;

type Event = Exclude<keyof typeof MESSAGES, 'began' | 'more'>;

export interface ChangeLogOptions {
  readonly desired: Pick<DesiredState, 'loadBalancers' | 'ignored'>;
  readonly log: Log;
  readonly clock?: Clock;
}

const PERIOD_MS = 60_000;

export class ChangeLog implements ChangeObserver {
  readonly #options: ChangeLogOptions;
  readonly #clock: Clock;
  /** Each load balancer as it was last logged. */
  readonly #known = new Map<OwnerKey, LoadBalancer>();
  readonly #budget: LineBudget;
  /** Counts in the period under way. */
  #members = { added: 0, removed: 0, changed: 0 };
  readonly #services = new Set<OwnerKey>();
  /** Names of listeners that had a ready member, and have none. */
  readonly #emptied = new Set<string>();

  constructor(options: ChangeLogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#budget = new LineBudget({
      onMore: (namespace, unlogged) => options.log.info(MESSAGES.more, { namespace, unlogged }),
      clock: this.#clock,
    });
  }

  began(keys: ReadonlySet<OwnerKey>): void {
    const { desired, log } = this.#options;
    const counts = { loadBalancers: 0, listeners: 0, addresses: 0 };
    for (const key of keys) {
      const loadBalancer = desired.loadBalancers.get(key);
      if (loadBalancer === undefined) continue;
      this.#known.set(key, loadBalancer);
      counts.loadBalancers++;
      counts.listeners += loadBalancer.listeners.length;
      counts.addresses += loadBalancer.vips.length;
    }
    log.info(MESSAGES.began, counts);
  }

  changed(keys: ReadonlySet<OwnerKey>): void {
    const { loadBalancers } = this.#options.desired;
    for (const key of keys) {
      const [before, now] = [this.#known.get(key), loadBalancers.get(key)];
      if (before === now) continue;
      if (now === undefined) this.#known.delete(key);
      else this.#known.set(key, now);
      this.#compare(key, before, now);
    }
  }

  #compare(key: OwnerKey, before: LoadBalancer | undefined, now: LoadBalancer | undefined): void {
    const { kind } = ownerOf(key);
    if (before === undefined && kind === 'Pool')
      this.#line(key, 'Pool added', { ports: placesOf(now).ports });
    else if (before === undefined) this.#line(key, 'LoadBalancer added', placesOf(now));
    else if (now === undefined && kind === 'Pool') {
      this.#forgetEmptied(before);
      this.#line(key, 'Pool removed', { ports: placesOf(before).ports });
    } else if (now === undefined) {
      this.#forgetEmptied(before);
      const why = this.#options.desired.ignored.get(key)?.reason;
      this.#line(key, 'LoadBalancer removed', { ...placesOf(before), ...(why !== undefined && { why }) });
    } else this.#compareParts(key, before, now);
  }

  #forgetEmptied({ listeners }: LoadBalancer): void {
    for (const { name } of listeners) this.#emptied.delete(name);
  }

  #compareParts(key: OwnerKey, before: LoadBalancer, now: LoadBalancer): void {
    const addresses = ({ vips }: LoadBalancer) => new Map(vips.map(({ address }) => [address, address]));
    eachDifference(addresses(before), addresses(now), (last, address) => {
      if (last === undefined) this.#line(key, 'Address added', { address });
      if (address === undefined) this.#line(key, 'Address removed', { address: last });
    });
    for (const [route, event] of changedRoutes(before, now)) this.#line(key, event, { route });
    const listeners = (one: LoadBalancer) => new Map(one.listeners.map((each) => [each.name, each]));
    eachDifference(listeners(before), listeners(now), (last, listener) => {
      if (last === undefined) this.#line(key, 'Listener added', placeOf(listener));
      else if (listener === undefined) this.#line(key, 'Listener removed', placeOf(last));
      else {
        const fields = differences(last, listener);
        if (fields.length > 0) this.#line(key, 'Listener changed', { ...placeOf(listener), fields });
        this.#comparePools(key, last, listener);
        this.#countMembers(key, last, listener);
      }
    });
  }

  #comparePools(key: OwnerKey, before: Listener, now: Listener): void {
    if (hasReady(now)) {
      if (this.#emptied.delete(now.name)) this.#line(key, 'Pool filled', placeOf(now));
    } else if (hasReady(before)) {
      this.#emptied.add(now.name);
      this.#line(key, 'Pool emptied', placeOf(now), 'warn');
    }
  }

  #countMembers(key: OwnerKey, before: Listener, now: Listener): void {
    const counts = { added: 0, removed: 0, changed: 0 };
    const members = ({ pool }: Listener) => new Map(pool.members.map((member) => [member.name, member]));
    eachDifference(members(before), members(now), (last, member) => {
      if (last === undefined) counts.added++;
      else if (member === undefined) counts.removed++;
      else if (!sameValue(last, member)) counts.changed++;
    });
    if (counts.added + counts.removed + counts.changed === 0) return;
    if (this.#services.size === 0) this.#clock.after(PERIOD_MS, () => this.#endOfPeriod());
    this.#services.add(key);
    this.#members.added += counts.added;
    this.#members.removed += counts.removed;
    this.#members.changed += counts.changed;
    this.#options.log.debug('Members changed', {
      ...fieldsOf(key, 'Member changed'),
      ...placeOf(now),
      ...counts,
    });
  }

  #line(key: OwnerKey, event: Event, more: object, level: 'info' | 'warn' = 'info'): void {
    const { namespace } = ownerOf(key);
    if (this.#budget.takes(namespace))
      this.#options.log[level](MESSAGES[event], { ...fieldsOf(key, event), ...more });
  }

  #endOfPeriod(): void {
    this.#options.log.info(MESSAGES['Member changed'], {
      kind: 'Member',
      services: this.#services.size,
      ...this.#members,
    });
    this.#members = { added: 0, removed: 0, changed: 0 };
    this.#services.clear();
  }
}

/** `kind` and `reason` are the words of the event; of a load balancer that is no Service's `kind` is that of its owner. */
function fieldsOf(key: OwnerKey, event: Event) {
  const [kind = '', reason = ''] = event.split(' ');
  const isOwner = kind === 'LoadBalancer' && ownerOf(key).kind !== 'Service';
  return { ...ownerFields(key), kind: isOwner ? kindInWords(key) : kind, reason };
}

function ownerFields(key: OwnerKey): Readonly<Record<string, string>> {
  const { kind, namespace, name } = ownerOf(key);
  if (kind === 'Gateway') return { namespace, gateway: name };
  return kind === 'Ingress' ? { ingressClass: name } : { namespace, service: name };
}

function hasReady({ pool }: Listener): boolean {
  return pool.members.some(({ state }) => state === 'ready');
}

/** Each route once, whatever listeners and hosts have it. Compares only hosts whose value is another one. */
function changedRoutes(before: LoadBalancer, now: LoadBalancer): readonly (readonly [string, Event])[] {
  const [last, next] = [hostsOf(before), hostsOf(now)];
  const changed = new Set<string>();
  for (const place of new Set([...last.keys(), ...next.keys()])) {
    const [lastHost, nextHost] = [last.get(place), next.get(place)];
    if (lastHost === nextHost) continue;
    const [old, fresh] = [entriesByRoute(lastHost), entriesByRoute(nextHost)];
    for (const route of new Set([...old.keys(), ...fresh.keys()]))
      if (!sameValue(old.get(route), fresh.get(route))) changed.add(route);
  }
  if (changed.size === 0) return [];
  const [had, has] = [routesOf(last), routesOf(next)];
  return [...changed].sort().map((route) => {
    const both = had.has(route) && has.has(route);
    return [route, both ? 'Route changed' : has.has(route) ? 'Route added' : 'Route removed'];
  });
}

function routesOf(hosts: ReadonlyMap<string, HostRoutes>): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { entries } of hosts.values()) for (const { rule } of entries) found.add(rule.route);
  return found;
}

/** By listener, section and host. */
function hostsOf({ listeners }: LoadBalancer): ReadonlyMap<string, HostRoutes> {
  const found = new Map<string, HostRoutes>();
  for (const { name, routing } of listeners)
    if (routing?.kind === 'http')
      for (const section of routing.sections)
        for (const each of section.hosts)
          found.set(`${name} ${section.name} ${each.host.kind} ${each.host.suffix}`, each);
  return found;
}

function entriesByRoute(host: HostRoutes | undefined): ReadonlyMap<string, readonly RouteEntry[]> {
  return Map.groupBy(host?.entries ?? [], ({ rule }) => rule.route);
}

function placesOf(loadBalancer: LoadBalancer | undefined) {
  const { vips = [], listeners = [] } = loadBalancer ?? {};
  const ports = new Set(listeners.map(({ protocol, port }) => `${protocol}/${port}`));
  return { addresses: vips.map(({ address }) => address), ports: [...ports] };
}

function placeOf(listener: Listener | undefined) {
  return { protocol: listener?.protocol, port: listener?.port, family: listener?.family };
}

/** The names of the fields that differ, without members. */
function differences(before: Listener, now: Listener): readonly string[] {
  const flat = ({ pool, labels: _, routing, ...listener }: Listener): Readonly<Record<string, unknown>> => {
    // Routes for HTTP have lines of their own.
    const own = routing?.kind === 'http' ? { detectMisdirected: routing.detectMisdirected } : { routing };
    return { ...listener, ...own, ...pool, pool: undefined, members: undefined };
  };
  const [last, next] = [flat(before), flat(now)];
  return Object.keys(next).filter((name) => !sameValue(last[name], next[name]));
}

/** Calls `see` with the value before and now of each name whose value is another one; undefined if there is none. */
function eachDifference<T>(
  before: ReadonlyMap<string, T>,
  now: ReadonlyMap<string, T>,
  see: (last: T | undefined, value: T | undefined) => void,
): void {
  for (const name of new Set([...before.keys(), ...now.keys()])) {
    const [last, value] = [before.get(name), now.get(name)];
    if (last !== value) see(last, value);
  }
}
