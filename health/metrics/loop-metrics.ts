// Metrics of the way from an object's change to HAProxy's acknowledgement: events, plans, and how long it took.

import type { Counter, Histogram, MetricRegistry } from './metric-registry.ts';

export interface LoopState {
  /** Load balancers that wait to be translated or planned. */
  readonly waiting: number;
}

const ACK_BUCKETS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Seconds, the same as kube-proxy's `kubeproxy_network_programming_duration_seconds`, so that both can be added up. */
const PROGRAMMING_BUCKETS = [0.25, 0.5, ...range(1, 59, 1), ...range(60, 115, 5), ...range(120, 300, 30)];

export class LoopMetrics {
  readonly #events: Counter;
  readonly #plans: Counter;
  readonly #ack: Histogram;
  readonly #programming: Histogram;
  #roundBegan: number | undefined;

  constructor(registry: MetricRegistry, state: () => LoopState) {
    const events = 'Changes of objects that a source delivered';
    this.#events = registry.counter('headgate_events_total', events, ['source']);
    registry.number(
      'headgate_waiting_changes',
      'Load balancers that wait for the loop',
      () => state().waiting,
    );
    this.#plans = registry.counter(
      'headgate_plans_total',
      'Plans made, by what they need',
      ['kind'],
      ['none', 'runtime', 'reload'].map((kind) => ({ kind })),
    );
    this.#ack = registry.histogram(
      'headgate_ack_duration_seconds',
      'From the change of an object reaching the agent to the acknowledgement by HAProxy',
      ACK_BUCKETS,
    );
    this.#programming = registry.histogram(
      'headgate_network_programming_duration_seconds',
      'From the change of pods, as their EndpointSlice says it, to the acknowledgement by HAProxy',
      PROGRAMMING_BUCKETS,
      ['path'],
    );
    for (const path of ['runtime', 'reload']) this.#programming.zero({ path });
  }

  eventReceived(source: string): void {
    this.#events.inc({ source });
  }

  planned(kind: 'none' | 'runtime' | 'reload'): void {
    this.#plans.inc({ kind });
  }

  acknowledged(seconds: number): void {
    this.#ack.observe(seconds);
  }

  programmed(path: 'runtime' | 'reload', seconds: number): void {
    this.#programming.observe({ path }, seconds);
  }

  /** Milliseconds that the loop's round under way has taken so far; 0 between two rounds. */
  get roundTime(): number {
    return this.#roundBegan === undefined ? 0 : performance.now() - this.#roundBegan;
  }

  roundBegan(): void {
    this.#roundBegan = performance.now();
  }

  roundEnded(): void {
    this.#roundBegan = undefined;
  }
}

function range(first: number, last: number, step: number): number[] {
  return Array.from({ length: (last - first) / step + 1 }, (_, at) => first + at * step);
}
