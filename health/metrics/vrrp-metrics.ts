// Metrics of VRRP on this host. Without VRRP they have no samples.

import type { MetricRegistry } from './metric-registry.ts';

/** undefined if this host has no VRRP. */
export type VrrpState =
  | {
      readonly instances: readonly VrrpInstance[];
      /** Instances of which another host is master, too. */
      readonly rivals: readonly string[];
      /** keepalived's fault; '' for none. */
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
  const instances = (): readonly VrrpInstance[] => state()?.instances ?? [];
  registry.gauge(
    'headgate_vrrp_state',
    'The state of a VRRP instance on this host',
    // Many pairs use the same name for an instance; only one pair has the anchor.
    ['vrrp_instance', 'anchor', 'state'],
    () =>
      instances().flatMap(({ name, anchors: [anchor = ''], state: current }) =>
        STATES.map(
          (each) => [{ vrrp_instance: name, anchor, state: each }, Number(each === current)] as const,
        ),
      ),
  );
  const each = (name: string, help: string, value: (instance: VrrpInstance) => number): void =>
    registry.gauge(name, help, ['vrrp_instance'], () =>
      instances().map((instance) => [{ vrrp_instance: instance.name }, value(instance)]),
    );
  each('headgate_vrrp_priority', 'The priority in force, lowered or not', ({ priority }) => priority);
  each('headgate_vrrp_vips', 'VIPs of the instance', ({ vips }) => vips);
  each('headgate_vrrp_rival', 'Whether this host is master and another host is, too', ({ name }) =>
    Number(state()?.rivals.includes(name) ?? false),
  );
  registry.gauge('headgate_keepalived_fault', 'Whether keepalived has a fault', [], () => {
    const now = state();
    return now === undefined ? [] : [[{}, Number(now.fault !== '')]];
  });
}
