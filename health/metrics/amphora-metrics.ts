// Metrics of an agent that is an amphora: what became of the pushes, heartbeats, listeners with Octavia's ids.

import type { MetricFamily } from '../../agent/base/metric-family.ts';
import { EventLoopMetrics } from './event-loop-metrics.ts';
import { MetricRegistry } from './metric-registry.ts';

export const PUSH_RESULTS = ['none', 'runtime', 'reload', 'refused', 'failed'] as const;

export interface AmphoraState {
  readonly amphoraId: string;
  readonly loadBalancers: readonly {
    readonly id: string;
    readonly haproxy: { readonly isRunning: boolean };
  }[];
  readonly heartbeat: {
    readonly sent: number;
    readonly last: { readonly at: Date; readonly bytes: number } | undefined;
  };
}

export class AmphoraMetrics {
  readonly #registry = new MetricRegistry();
  readonly #eventLoop: EventLoopMetrics;
  /** Counts one push. */
  readonly pushed: (result: (typeof PUSH_RESULTS)[number]) => void;

  constructor(version: string, state: () => AmphoraState) {
    const registry = this.#registry;
    registry.gauge('headgate_build_info', 'Always 1; the version is a label', ['version'], () => [
      [{ version }, 1],
    ]);
    registry.gauge('headgate_amphora_info', 'Always 1; the id of the amphora is a label', ['amphora'], () => [
      [{ amphora: state().amphoraId }, 1],
    ]);
    this.pushed = registry.counter<[result: (typeof PUSH_RESULTS)[number]]>(
      'headgate_pushes_total',
      'Texts of load balancers that the controller has pushed, by how HAProxy got them, or whether it refused them',
      ['result'],
      PUSH_RESULTS.map((result) => [result]),
    );
    registry.gauge(
      'headgate_amphora_haproxy_running',
      'Whether the HAProxy of a load balancer answers',
      ['loadbalancer'],
      () => state().loadBalancers.map(({ id, haproxy }) => [{ loadbalancer: id }, Number(haproxy.isRunning)]),
    );
    registry.number(
      'headgate_heartbeats_sent',
      'Heartbeats sent since the start',
      () => state().heartbeat.sent,
    );
    registry.number(
      'headgate_heartbeat_timestamp_seconds',
      'When the last heartbeat was sent',
      () => (state().heartbeat.last?.at.getTime() ?? 0) / 1_000,
    );
    registry.number(
      'headgate_heartbeat_bytes',
      'The length of the last heartbeat; a datagram has 65507 at most',
      () => state().heartbeat.last?.bytes ?? 0,
    );
    this.#eventLoop = new EventLoopMetrics(registry);
  }

  async families(): Promise<readonly MetricFamily[]> {
    this.#eventLoop.read();
    return this.#registry.families();
  }
}
