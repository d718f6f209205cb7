// Metrics of the agent as a client of the Kubernetes API: lists, watches, writes.

import type { MetricRegistry } from './metric-registry.ts';

/** undefined without a cluster. */
export type ApiState =
  | {
      /** This agent writes to the cluster. */
      readonly isLeader: boolean;
      /** The Lease whose holder is the leader: `namespace/name`. */
      readonly lease: string;
      /** No API server has answered for longer than the setting `clusterLostAfter`. */
      readonly isLost: boolean;
      /** By kind; one for each namespace that is watched. */
      readonly watches: readonly {
        readonly kind: string;
        readonly connected: boolean;
        /** Why an optional kind has no objects. */
        readonly lack: 'none' | 'unknown' | 'forbidden';
      }[];
    }
  | undefined;

const WRITE_RESULTS = ['done', 'conflict', 'failed', 'dropped'] as const;
const EVENT_RESULTS = ['done', 'dropped'] as const;

export type ApiMetrics = ReturnType<typeof apiMetrics>;

export function apiMetrics(registry: MetricRegistry, state: () => ApiState) {
  registry.gauge(
    'headgate_api_connected',
    'Whether the agent receives changes of a kind from the API server; no sample for a kind that it lacks',
    ['kind'],
    () => {
      const rows = new Map<string, number>();
      for (const { kind, connected, lack } of state()?.watches ?? [])
        if (lack !== 'unknown') rows.set(kind, Math.min(rows.get(kind) ?? 1, Number(connected)));
      return [...rows].map(([kind, value]) => [{ kind }, value] as const);
    },
  );
  const lost =
    'Whether no API server has answered for longer than `clusterLostAfter`: the cluster may be gone';
  registry.gauge('headgate_cluster_lost', lost, [], () => {
    const now = state();
    return now === undefined ? [] : [[{}, Number(now.isLost)]];
  });
  const leader = 'Whether this agent is the leader, which writes to the cluster';
  registry.gauge('headgate_leader', leader, ['lease'], () => {
    const now = state();
    return now === undefined ? [] : [[{ lease: now.lease }, Number(now.isLeader)]];
  });
  return {
    apiEvent: registry.counter<[kind: string, type: string]>(
      'headgate_api_events_total',
      'Watch events from the API server',
      ['kind', 'type'],
    ),
    apiList: registry.counter<[kind: string, reason: string]>(
      'headgate_api_lists_total',
      'List requests to the API server, by reason',
      ['kind', 'reason'],
    ),
    apiWatchEnded: registry.counter<[kind: string, reason: string]>(
      'headgate_api_watch_ends_total',
      'Watches of the API server that ended, by reason',
      ['kind', 'reason'],
    ),
    statusWritten: registry.counter<[result: (typeof WRITE_RESULTS)[number]]>(
      'headgate_status_writes_total',
      'Writes of statuses to the cluster, and of the finalizer of Services',
      ['result'],
      WRITE_RESULTS.map((result) => [result]),
    ),
    eventSent: registry.counter<[result: (typeof EVENT_RESULTS)[number]]>(
      'headgate_kubernetes_events_total',
      'Events for the cluster',
      ['result'],
      EVENT_RESULTS.map((result) => [result]),
    ),
  };
}
