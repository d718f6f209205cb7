// Metrics of how VRRP is on this host. Where there is none, they have no row.

import type { GaugeRow, MetricRegistry } from './metric-registry.ts';

/** undefined where this host has no VRRP. */
export type VrrpState =
  | {
      readonly instances: readonly VrrpInstance[];
      /** Instances of which another host is master, too. */
      readonly rivals: readonly string[];
      /** What is wrong with keepalived, '' where nothing is. */
      readonly fault: string;
    }
  | undefined;

interface VrrpInstance {
  readonly name: string;
  readonly state: string;
  readonly priority: number;
  /** Addresses that never change, the same on all hosts of the instance. */
  readonly anchors: readonly string[];
  readonly vips: number;
}

const STATES = ['master', 'backup', 'fault', 'unknown'];

export function addVrrpMetrics(registry: MetricRegistry, state: () => VrrpState): void {
  registry.gauge(
    'headgate_vrrp_state',
    'The state of a VRRP instance on this host',
    // Many pairs have an instance of one name; the anchor is the one pair's.
    ['vrrp_instance', 'anchor', 'state'],
    () =>
      (state()?.instances ?? []).flatMap(({ name, anchors: [anchor = ''], state: current }) =>
        STATES.map(
          (each) => [{ vrrp_instance: name, anchor, state: each }, Number(each === current)] as const,
        ),
      ),
  );
  const each = (name: string, help: string, value: (instance: VrrpInstance) => number): void =>
    registry.gauge(name, help, ['vrrp_instance'], () =>
      (state()?.instances ?? []).map(
        (instance): GaugeRow => [{ vrrp_instance: instance.name }, value(instance)],
      ),
    );
  each('headgate_vrrp_priority', 'Priority, with what lowers it', ({ priority }) => priority);
  each('headgate_vrrp_vips', 'VIPs that go with the instance', ({ vips }) => vips);
  each('headgate_vrrp_rival', 'Whether this host, a master, hears another one', ({ name }) =>
    Number(state()?.rivals.includes(name) ?? false),
  );
  registry.gauge('headgate_keepalived_fault', 'Whether keepalived is not as it should be', [], () => {
    const now = state();
    return now === undefined ? [] : [[{}, Number(now.fault !== '')]];
  });
}
