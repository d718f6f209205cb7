// The agent's own metrics: each part of the agent gets those that it counts, and all of them are given as families to
// write out. docs/metrics.md has the same names (a test compares).

import type { MetricFamily } from '../agent/base/metric-family.ts';
import { AddressMetrics, type AddressState } from './metrics/address-metrics.ts';
import { ApiMetrics, type ApiState } from './metrics/api-metrics.ts';
import { DataplaneMetrics, type DataplaneState } from './metrics/dataplane-metrics.ts';
import { EventLoopMetrics } from './metrics/event-loop-metrics.ts';
import { LoopMetrics, type LoopState } from './metrics/loop-metrics.ts';
import { MetricRegistry } from './metrics/metric-registry.ts';
import { addObjectMetrics, type ObjectState } from './metrics/object-metrics.ts';
import { PairMetrics, type PairState } from './metrics/pair-metrics.ts';
import { addVrrpMetrics, type VrrpState } from './metrics/vrrp-metrics.ts';

/** What the gauges show, read once at each scrape. */
export interface AgentState extends ObjectState, LoopState {
  readonly haproxy: DataplaneState;
  readonly addresses: AddressState;
  readonly api: ApiState;
  readonly vrrp: VrrpState;
  readonly pair: PairState;
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
    this.loop = new LoopMetrics(registry, () => this.#now);
    this.api = new ApiMetrics(registry, () => this.#now.api);
    this.addresses = new AddressMetrics(registry, () => this.#now.addresses);
    this.dataplane = new DataplaneMetrics(registry, () => this.#now.haproxy);
    addVrrpMetrics(registry, () => this.#now.vrrp);
    this.pair = new PairMetrics(registry, () => this.#now.pair);
    this.#eventLoop = new EventLoopMetrics(registry);
  }

  /** As they are now. */
  async families(): Promise<readonly MetricFamily[]> {
    this.#state = this.#read();
    this.#eventLoop.read();
    return this.#registry.families();
  }

  get #now(): AgentState {
    return this.#state ?? this.#read();
  }
}
