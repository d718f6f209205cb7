// Logs what changes in load balancers: which appear, change and go, with their listeners and addresses. Changes of members
// are counted and logged once a minute.

import { type Clock, systemClock } from '../base/clock.ts';
import { LineBudget } from '../base/line-budget.ts';
import { sameValue } from '../base/same-value.ts';
import type { Log } from '../host/log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Listener, LoadBalancer, OwnerKey } from '../model/load-balancer.ts';
import { ownerOf } from '../model/names.ts';
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
  /** As last logged. */
  readonly #known = new Map<OwnerKey, LoadBalancer>();
  readonly #budget: LineBudget;
  /** Of the period under way. */
  #members = { added: 0, removed: 0, changed: 0 };
  readonly #services = new Set<OwnerKey>();

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
    if (before === undefined) this.#line(key, 'LoadBalancer added', placesOf(now));
    else if (now === undefined) {
      const why = this.#options.desired.ignored.get(key)?.reason;
      this.#line(key, 'LoadBalancer removed', { ...placesOf(before), ...(why !== undefined && { why }) });
    } else this.#compareParts(key, before, now);
  }

  #compareParts(key: OwnerKey, before: LoadBalancer, now: LoadBalancer): void {
    const addresses = ({ vips }: LoadBalancer) => new Map(vips.map(({ address }) => [address, address]));
    eachDifference(addresses(before), addresses(now), (last, address) => {
      if (last === undefined) this.#line(key, 'Address added', { address });
      if (address === undefined) this.#line(key, 'Address removed', { address: last });
    });
    const listeners = (one: LoadBalancer) => new Map(one.listeners.map((each) => [each.name, each]));
    eachDifference(listeners(before), listeners(now), (last, listener) => {
      if (last === undefined) this.#line(key, 'Listener added', placeOf(listener));
      else if (listener === undefined) this.#line(key, 'Listener removed', placeOf(last));
      else {
        const fields = differences(last, listener);
        if (fields.length > 0) this.#line(key, 'Listener changed', { ...placeOf(listener), fields });
        this.#countMembers(key, last, listener);
      }
    });
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

  #line(key: OwnerKey, event: Event, more: object): void {
    const fields = fieldsOf(key, event);
    if (this.#budget.takes(fields.namespace)) this.#options.log.info(MESSAGES[event], { ...fields, ...more });
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

/** `kind` and `reason` are the words of the event. */
function fieldsOf(key: OwnerKey, event: Event) {
  const { namespace, name } = ownerOf(key);
  const [kind, reason] = event.split(' ');
  return { namespace, service: name, kind, reason };
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
  const flat = ({ pool, labels: _, ...listener }: Listener): Readonly<Record<string, unknown>> => {
    return { ...listener, ...pool, pool: undefined, members: undefined };
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
