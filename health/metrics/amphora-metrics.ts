// Metrics of an agent that is an amphora: what became of the pushes, heartbeats, listeners with Octavia's ids.

import type { MetricFamily } from '../../agent/base/metric-family.ts';
import { escaped } from '../scrape/exposition.ts';
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

export interface MeasuredListener {
  readonly id: string;
  /** The word of the heartbeat; '' if the listener is not served. */
  readonly status: string;
  readonly connections: number;
  readonly pools: readonly { readonly id: string; readonly members: Readonly<Record<string, string>> }[];
}

/** Metrics of listeners and pools, with Octavia's ids. */
export function amphoraListenerFamilies(listeners: readonly MeasuredListener[]): readonly MetricFamily[] {
  const ofListeners = (value: (listener: MeasuredListener) => number): readonly ValueRow[] =>
    listeners.map((each) => ({ labels: `listener="${escaped(each.id)}"`, value: value(each) }));
  return [
    family(
      'headgate_amphora_listener_served',
      'Whether a listener accepts connections',
      ofListeners(({ status }) => Number(status === 'OPEN' || status === 'FULL')),
    ),
    family(
      'headgate_amphora_listener_connections',
      'Open connections of a listener, or flows of one of UDP or SCTP',
      ofListeners(({ connections }) => connections),
    ),
    family(
      'headgate_amphora_members',
      'Members of a pool by their status in heartbeats',
      membersOf(listeners),
    ),
  ];
}

interface ValueRow {
  readonly labels: string;
  readonly value: number;
}

function family(name: string, help: string, rows: readonly ValueRow[]): MetricFamily {
  return {
    name,
    help,
    type: 'gauge',
    parts: [{ labels: '', rows, value: (row) => (row as ValueRow).value }],
  };
}

/** A pool of several listeners counts once. */
function membersOf(listeners: readonly MeasuredListener[]): readonly ValueRow[] {
  const pools = new Map(
    listeners.flatMap(({ pools: all }) => all.map((pool) => [pool.id, pool.members] as const)),
  );
  return [...pools].flatMap(([id, members]) => {
    const counts = new Map<string, number>();
    for (const status of Object.values(members)) {
      // `UP 1/3` is UP.
      const word = status.replace(/ \d+\/\d+$/, '');
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    return [...counts].map(([status, value]) => ({
      labels: `pool="${escaped(id)}",status="${escaped(status)}"`,
      value,
    }));
  });
}
