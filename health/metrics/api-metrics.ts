// Metrics of the agent as a client of the Kubernetes API: what it reads, whether it hears of changes, what it writes.

import type { Counter, MetricRegistry } from './metric-registry.ts';

/** undefined without a cluster. */
export type ApiState =
  | {
      /** Whether this agent is the one that writes to the cluster. */
      readonly isLeader: boolean;
      /** Of whose holder that is: `namespace/name`. */
      readonly lease: string;
      /** By kind, one for each namespace that is watched. */
      readonly watches: readonly {
        readonly kind: string;
        readonly connected: boolean;
        /** Why there is nothing of an optional kind. */
        readonly lack: 'none' | 'unknown' | 'forbidden';
      }[];
    }
  | undefined;

export class ApiMetrics {
  readonly #events: Counter;
  readonly #lists: Counter;
  readonly #watchEnds: Counter;
  readonly #statusWrites: Counter;
  readonly #eventsSent: Counter;

  constructor(registry: MetricRegistry, state: () => ApiState) {
    registry.gauge(
      'headgate_api_connected',
      'Whether changes of a kind are heard of from the API server',
      ['kind'],
      () => {
        const rows = new Map<string, number>();
        for (const { kind, connected, lack } of state()?.watches ?? [])
          if (lack !== 'unknown') rows.set(kind, Math.min(rows.get(kind) ?? 1, Number(connected)));
        return [...rows].map(([kind, value]) => [{ kind }, value] as const);
      },
    );
    const leader = 'Whether this agent is the one that writes to the cluster';
    registry.gauge('headgate_leader', leader, ['lease'], () => {
      const now = state();
      return now === undefined ? [] : [[{ lease: now.lease }, Number(now.isLeader)]];
    });
    const events = 'Events of watches of the API server';
    this.#events = registry.counter('headgate_api_events_total', events, ['kind', 'type']);
    const lists = 'Lists of the API server, by why they were made';
    this.#lists = registry.counter('headgate_api_lists_total', lists, ['kind', 'reason']);
    const ends = 'Ends of watches of the API server';
    this.#watchEnds = registry.counter('headgate_api_watch_ends_total', ends, ['kind', 'reason']);
    this.#statusWrites = registry.counter(
      'headgate_status_writes_total',
      'Writes of Services in the cluster',
      ['result'],
      ['done', 'conflict', 'failed', 'dropped'].map((result) => ({ result })),
    );
    this.#eventsSent = registry.counter(
      'headgate_kubernetes_events_total',
      'Events told to the cluster',
      ['result'],
      ['done', 'dropped'].map((result) => ({ result })),
    );
  }

  apiEvent(kind: string, type: string): void {
    this.#events.inc({ kind, type });
  }

  apiList(kind: string, reason: string): void {
    this.#lists.inc({ kind, reason });
  }

  apiWatchEnded(kind: string, reason: string): void {
    this.#watchEnds.inc({ kind, reason });
  }

  statusWritten(result: 'done' | 'conflict' | 'failed' | 'dropped'): void {
    this.#statusWrites.inc({ result });
  }

  eventSent(result: 'done' | 'dropped'): void {
    this.#eventsSent.inc({ result });
  }
}
