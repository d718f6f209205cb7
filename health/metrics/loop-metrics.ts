// Metrics of the way from an object's change to HAProxy's acknowledgement: events, plans, latency.

import type { MetricRegistry } from './metric-registry.ts';

export interface LoopState {
  /** Load balancers that wait to be translated or planned. */
  readonly waiting: number;
}

const ACK_BUCKETS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Seconds; those of kube-proxy's `kubeproxy_network_programming_duration_seconds`, so that both can be added up. */
const PROGRAMMING_BUCKETS = [0.25, 0.5, ...range(1, 59, 1), ...range(60, 115, 5), ...range(120, 300, 30)];
const EFFORTS = ['none', 'runtime', 'reload'] as const;

export type LoopMetrics = ReturnType<typeof loopMetrics>;

export function loopMetrics(registry: MetricRegistry, state: () => LoopState) {
  const waiting = 'Load balancers that wait for the loop';
  registry.number('headgate_waiting_changes', waiting, () => state().waiting);
  let roundBegan: number | undefined;
  return {
    eventReceived: registry.counter<[source: string]>(
      'headgate_events_total',
      'Changes of objects that a source delivered',
      ['source'],
    ),
    planned: registry.counter<[kind: (typeof EFFORTS)[number]]>(
      'headgate_plans_total',
      'Plans, by what they need',
      ['kind'],
      EFFORTS.map((kind) => [kind]),
    ),
    /** Seconds. */
    acknowledged: registry.histogram(
      'headgate_ack_duration_seconds',
      'Time from an event that the agent received to the acknowledgement by HAProxy',
      ACK_BUCKETS,
    ),
    programmed: registry.histogram<[path: 'runtime' | 'reload']>(
      'headgate_network_programming_duration_seconds',
      'Time from the change of a pod, as its EndpointSlice has it, to the acknowledgement by HAProxy',
      PROGRAMMING_BUCKETS,
      ['path'],
      [['runtime'], ['reload']],
    ),
    /** Milliseconds that the loop's current round has taken so far; 0 between two rounds. */
    get roundTime(): number {
      return roundBegan === undefined ? 0 : performance.now() - roundBegan;
    },
    roundStarted: (): void => {
      roundBegan = performance.now();
    },
    roundEnded: (): void => {
      roundBegan = undefined;
    },
  };
}

function range(first: number, last: number, step: number): number[] {
  return Array.from({ length: (last - first) / step + 1 }, (_, at) => first + at * step);
}
