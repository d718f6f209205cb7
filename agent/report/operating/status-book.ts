// The operating status of every load balancer, updated in slices after a change, so that reports and metrics only read
// it. Members are kept by name only if one of them is not well.

import { handleInSlices } from '../../base/slice.ts';
import type { LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { OPERATING_STATUSES, type OperatingStatus } from '../../model/operating-status.ts';
import type { ChangeObserver } from '../change-observers.ts';
import { type HealthFacts, type LoadBalancerStatus, operatingStatus } from './operating-status.ts';
import type { Reach } from './reachable.ts';

export type StatusKind = 'load_balancer' | 'listener' | 'pool' | 'member';
/** How many there are, by kind and status; 0 included. */
export type StatusCounts = Readonly<Record<StatusKind, Readonly<Record<OperatingStatus, number>>>>;

interface Entry {
  readonly status: LoadBalancerStatus;
  /** How many members have each status, in the order of OPERATING_STATUSES. */
  readonly members: readonly number[];
}

/** A member with one of these statuses needs no mention. */
export const WELL: ReadonlySet<OperatingStatus> = new Set(['ONLINE', 'NO_MONITOR']);

export interface HealthTrackerOptions {
  readonly loadBalancers: ReadonlyMap<string, LoadBalancer>;
  readonly dataplane: HealthFacts;
  readonly reach: Reach;
  /** The operating status of these load balancers has changed. */
  readonly onChanged: (keys: ReadonlySet<string>) => void;
}

export class HealthTracker implements ChangeObserver {
  readonly book = new StatusBook();
  readonly #options: HealthTrackerOptions;
  readonly #due = new Set<string>();
  readonly #update: () => Promise<void>;
  #changed = new Set<string>();

  constructor(options: HealthTrackerOptions) {
    const { loadBalancers, dataplane, reach } = options;
    this.#options = options;
    this.#update = handleInSlices(this.#due, (key) => {
      if (this.book.update(key, loadBalancers.get(key), dataplane, reach)) this.#changed.add(key);
    });
  }

  changed(keys: ReadonlySet<string>): void {
    for (const key of keys) this.#due.add(key);
    if (this.#due.size > 0) void this.#update().then(() => this.#report());
  }

  #report(): void {
    const changed = this.#changed;
    this.#changed = new Set();
    if (changed.size > 0) this.#options.onChanged(changed);
  }
}

export class StatusBook {
  readonly #entries = new Map<string, Entry>();
  /** Keys of load balancers in ERROR, OFFLINE or DEGRADED. */
  readonly #unwell = new Set<string>();
  readonly #counts: Record<StatusKind, Record<OperatingStatus, number>> = {
    load_balancer: none(),
    listener: none(),
    pool: none(),
    member: none(),
  };

  /** Reads the status of one load balancer again; undefined if it is gone. True if a status or a problem has changed. */
  update(key: string, loadBalancer: LoadBalancer | undefined, facts: HealthFacts, reach?: Reach): boolean {
    const before = this.#entries.get(key);
    const after = loadBalancer && operatingStatus(loadBalancer, facts, reach);
    const hasFault = after?.status === 'ERROR' || after?.status === 'DEGRADED';
    if (before !== undefined) this.#count(before, -1);
    if (after === undefined) this.#entries.delete(key);
    else {
      const entry = { status: hasFault ? after : withoutWell(after), members: membersOf(after) };
      this.#entries.set(key, entry);
      this.#count(entry, 1);
    }
    // A class without Ingresses has neither a listener nor a problem, and nothing is wrong with it.
    const isUsed = (loadBalancer?.listeners.length ?? 0) + (loadBalancer?.problems.length ?? 0) > 0;
    const isOffline = after?.status === 'OFFLINE' && isUsed;
    if (hasFault || isOffline) this.#unwell.add(key);
    else this.#unwell.delete(key);
    if (before === undefined || after === undefined) return before !== undefined || after !== undefined;
    return !isSame(before.status, after);
  }

  of(key: string): LoadBalancerStatus | undefined {
    return this.#entries.get(key)?.status;
  }

  /** The same value until the load balancer is updated. */
  *all(): Generator<LoadBalancerStatus, void, void> {
    for (const { status } of this.#entries.values()) yield status;
  }

  get counts(): StatusCounts {
    return this.#counts;
  }

  /** Load balancers in ERROR, OFFLINE or DEGRADED. */
  unwell(): readonly LoadBalancerStatus[] {
    return [...this.#unwell].flatMap((key) => this.of(key) ?? []);
  }

  problemsOf(key: string): readonly Problem[] {
    return this.of(key)?.problems ?? [];
  }

  #count({ status, members }: Entry, step: 1 | -1): void {
    const counts = this.#counts;
    counts.load_balancer[status.status] += step;
    for (const listener of status.listeners) {
      counts.listener[listener.status] += step;
      counts.pool[listener.pool] += step;
    }
    for (const [at, count] of members.entries())
      counts.member[OPERATING_STATUSES[at] as OperatingStatus] += step * count;
  }
}

/** Equal lists in a row are one list, to save memory. */
function membersOf({ listeners }: LoadBalancerStatus): readonly number[] {
  const all = listeners.flatMap(({ members }) => members);
  const counts = OPERATING_STATUSES.map((word) => all.filter(({ status }) => status === word).length);
  if (!counts.every((count, at) => count === lastCounts[at])) lastCounts = counts;
  return lastCounts;
}

let lastCounts: readonly number[] = [];

function withoutWell(status: LoadBalancerStatus): LoadBalancerStatus {
  const listeners = status.listeners.map((listener) => {
    const { members } = listener;
    const isWell = members.every((member) => WELL.has(member.status));
    // Without HAProxy all listeners are like this.
    const isOffline = listener.status === 'OFFLINE' && members.every((member) => member.status === 'OFFLINE');
    return isWell || isOffline ? { ...listener, members: NO_MEMBERS } : listener;
  });
  return { ...status, listeners };
}

const NO_MEMBERS: readonly never[] = [];

/** Changes of single members do not count. */
function isSame(a: LoadBalancerStatus, b: LoadBalancerStatus): boolean {
  if (a.status !== b.status || a.isMonitored !== b.isMonitored || a.listeners.length !== b.listeners.length)
    return false;
  return a.listeners.every((listener, at) => {
    const other = b.listeners[at];
    return (
      listener.name === other?.name &&
      listener.status === other.status &&
      listener.ready === other.ready &&
      listener.down === other.down &&
      listener.taking === other.taking &&
      listener.failing === other.failing &&
      listener.fails === other.fails
    );
  });
}

function none(): Record<OperatingStatus, number> {
  return Object.fromEntries(OPERATING_STATUSES.map((status) => [status, 0])) as Record<
    OperatingStatus,
    number
  >;
}
