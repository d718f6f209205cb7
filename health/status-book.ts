// The operating status of every load balancer, kept so that each change costs what the load balancer costs that
// changed, and a question about all costs nothing. Holds values only.

import type { LoadBalancer, Problem } from '../agent/model.ts';
import {
  type DataplaneFacts,
  type LoadBalancerStatus,
  OPERATING_STATUSES,
  type OperatingStatus,
  operatingStatus,
} from './operating-status.ts';

export type StatusKind = 'load_balancer' | 'listener' | 'pool' | 'member';
/** How many there are, by kind and status; every pair has its number, be it 0. */
export type StatusCounts = Readonly<Record<StatusKind, Readonly<Record<OperatingStatus, number>>>>;

export class StatusBook {
  readonly #statuses = new Map<string, LoadBalancerStatus>();
  /** Keys of those that are neither ONLINE nor OFFLINE nor without a monitor. */
  readonly #unwell = new Set<string>();
  readonly #counts: Record<StatusKind, Record<OperatingStatus, number>> = {
    load_balancer: none(),
    listener: none(),
    pool: none(),
    member: none(),
  };

  /** Looks at one load balancer again, undefined where it is gone. True where a status or a problem is another one. */
  update(key: string, loadBalancer: LoadBalancer | undefined, facts: DataplaneFacts): boolean {
    const before = this.#statuses.get(key);
    const after = loadBalancer && operatingStatus(loadBalancer, facts);
    if (before !== undefined) this.#count(before, -1);
    if (after === undefined) this.#statuses.delete(key);
    else {
      this.#statuses.set(key, after);
      this.#count(after, 1);
    }
    const isUnwell = after?.status === 'ERROR' || after?.status === 'DEGRADED';
    if (isUnwell) this.#unwell.add(key);
    else this.#unwell.delete(key);
    return before === undefined || after === undefined || !isSame(before, after);
  }

  of(key: string): LoadBalancerStatus | undefined {
    return this.#statuses.get(key);
  }

  /** A value of its own as long as nobody has looked at the load balancer again. */
  all(): Iterable<LoadBalancerStatus> {
    return this.#statuses.values();
  }

  get counts(): StatusCounts {
    return this.#counts;
  }

  /** Those in ERROR and DEGRADED. */
  unwell(): readonly LoadBalancerStatus[] {
    return [...this.#unwell].flatMap((key) => this.#statuses.get(key) ?? []);
  }

  problemsOf(key: string): readonly Problem[] {
    return this.#statuses.get(key)?.problems ?? [];
  }

  #count({ status, listeners }: LoadBalancerStatus, step: 1 | -1): void {
    const counts = this.#counts;
    counts.load_balancer[status] += step;
    for (const listener of listeners) {
      counts.listener[listener.status] += step;
      counts.pool[listener.pool] += step;
      for (const member of listener.members) counts.member[member.status] += step;
    }
  }
}

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
