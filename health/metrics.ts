// The agent's own metrics: each part of the agent adds to its own, and a scrape gets all of them as families.
// docs/metrics.md is written from them.

import type { MetricFamily } from '../agent/base/metric-family.ts';
import { type AddressMetrics, type AddressState, addressMetrics } from './metrics/address-metrics.ts';
import { type ApiMetrics, type ApiState, apiMetrics } from './metrics/api-metrics.ts';
import { addConnectionSyncMetrics, type ConnectionSyncState } from './metrics/connection-sync-metrics.ts';
import { type DataplaneMetrics, type DataplaneState, dataplaneMetrics } from './metrics/dataplane-metrics.ts';
import { EventLoopMetrics } from './metrics/event-loop-metrics.ts';
import { type HostsState, hostMetrics } from './metrics/host-metrics.ts';
import { type LoopMetrics, type LoopState, loopMetrics } from './metrics/loop-metrics.ts';
import { MetricRegistry } from './metrics/metric-registry.ts';
import { addObjectMetrics, type ObjectState } from './metrics/object-metrics.ts';
import { type PairMetrics, type PairState, pairMetrics } from './metrics/pair-metrics.ts';
import { addVrrpMetrics, type VrrpState } from './metrics/vrrp-metrics.ts';

/** The values of the gauges, read once at each scrape. */
export interface AgentState extends ObjectState, LoopState {
  readonly haproxy: DataplaneState;
  readonly addresses: AddressState;
  readonly api: ApiState;
  readonly vrrp: VrrpState;
  readonly pair: PairState;
  readonly hosts: HostsState;
  readonly connectionSync: ConnectionSyncState;
}

export class Metrics {
  readonly loop: LoopMetrics;
  readonly api: ApiMetrics;
  readonly addresses: AddressMetrics;
  readonly dataplane: DataplaneMetrics;
  readonly pair: PairMetrics;
  readonly #registry = new MetricRegistry();
  readonly #eventLoop: EventLoopMetrics;
  readonly #read: () => AgentState;
  #state: AgentState | undefined;

  constructor(version: string, read: () => AgentState) {
    this.#read = read;
    const registry = this.#registry;
    registry.gauge('headgate_build_info', 'Always 1; the version is a label', ['version'], () => [
      [{ version }, 1],
    ]);
    addObjectMetrics(registry, () => this.#now);
    this.loop = loopMetrics(registry, () => this.#now);
    this.api = apiMetrics(registry, () => this.#now.api);
    this.addresses = addressMetrics(registry, () => this.#now.addresses);
    this.dataplane = dataplaneMetrics(registry, () => this.#now.haproxy);
    addVrrpMetrics(registry, () => this.#now.vrrp);
    this.pair = pairMetrics(registry, () => this.#now.pair);
    hostMetrics(registry, () => this.#now.hosts);
    addConnectionSyncMetrics(registry, () => this.#now.connectionSync);
    this.#eventLoop = new EventLoopMetrics(registry);
  }

  /** With their current values. */
  async families(): Promise<readonly MetricFamily[]> {
    this.#state = this.#read();
    this.#eventLoop.read();
    return this.#registry.families();
  }

  get #now(): AgentState {
    return this.#state ?? this.#read();
  }
}
