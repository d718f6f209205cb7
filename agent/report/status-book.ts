// The operating status of every load balancer, kept so that each change costs what the load balancer costs that
// changed, and a question about all costs nothing. Holds values only, and members by name only where one is not well,
// unless all are OFFLINE with their listener.

import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import { OPERATING_STATUSES, type OperatingStatus } from '../model/operating-status.ts';
import { type HealthFacts, type LoadBalancerStatus, operatingStatus } from './operating-status.ts';

export type StatusKind = 'load_balancer' | 'listener' | 'pool' | 'member';
/** How many there are, by kind and status; every pair has its number, be it 0. */
export type StatusCounts = Readonly<Record<StatusKind, Readonly<Record<OperatingStatus, number>>>>;

interface Entry {
  readonly status: LoadBalancerStatus;
  /** How many members have each status, in the order of OPERATING_STATUSES. */
  readonly members: readonly number[];
}

/** What a member is said to be that needs no saying. */
export const WELL: ReadonlySet<OperatingStatus> = new Set(['ONLINE', 'NO_MONITOR']);

export class StatusBook {
  readonly #entries = new Map<string, Entry>();
  /** Keys of those that are neither ONLINE nor OFFLINE nor without a monitor. */
  readonly #unwell = new Set<string>();
  readonly #counts: Record<StatusKind, Record<OperatingStatus, number>> = {
    load_balancer: none(),
    listener: none(),
    pool: none(),
    member: none(),
  };

  /** Looks at one load balancer again, undefined where it is gone. True where a status or a problem is another one. */
  update(key: string, loadBalancer: LoadBalancer | undefined, facts: HealthFacts): boolean {
    const before = this.#entries.get(key);
    const after = loadBalancer && operatingStatus(loadBalancer, facts);
    const isUnwell = after?.status === 'ERROR' || after?.status === 'DEGRADED';
    if (before !== undefined) this.#count(before, -1);
    if (after === undefined) this.#entries.delete(key);
    else {
      const entry = { status: isUnwell ? after : withoutWell(after), members: membersOf(after) };
      this.#entries.set(key, entry);
      this.#count(entry, 1);
    }
    if (isUnwell) this.#unwell.add(key);
    else this.#unwell.delete(key);
    return before === undefined || after === undefined || !isSame(before.status, after);
  }

  of(key: string): LoadBalancerStatus | undefined {
    return this.#entries.get(key)?.status;
  }

  /** A value of its own as long as nobody has looked at the load balancer again. */
  *all(): Generator<LoadBalancerStatus, void, void> {
    for (const { status } of this.#entries.values()) yield status;
  }

  get counts(): StatusCounts {
    return this.#counts;
  }

  /** Those in ERROR and DEGRADED. */
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

/** One list for all that are the same as the one before. */
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
    // Where HAProxy is away that is all there are.
    const isOffline = listener.status === 'OFFLINE' && members.every((member) => member.status === 'OFFLINE');
    return isWell || isOffline ? { ...listener, members: NOBODY } : listener;
  });
  return { ...status, listeners };
}

const NOBODY: readonly never[] = [];

/** Which members there are is told elsewhere. */
function isSame(a: LoadBalancerStatus, b: LoadBalancerStatus): boolean {
  if (a.status !== b.status || a.isMonitored !== b.isMonitored || a.listeners.length !== b.listeners.length)
    return false;
  return a.listeners.every((listener, at) => {
    const other = b.listeners[at];
    return (
      listener.name === other?.name &&
      listener.status === other.status &&
      listener.ready === other.ready &&
      listener.down === other.down
    );
  });
}

function none(): Record<OperatingStatus, number> {
  return Object.fromEntries(OPERATING_STATUSES.map((status) => [status, 0])) as Record<
    OperatingStatus,
    number
  >;
}
