// What each instance is, for status and metrics. Pure.

import { instanceName, type VrrpInstanceSettings, type VrrpInstanceStatus } from './vrrp.ts';
import type { InstanceState } from './vrrp-states.ts';

export interface InstanceFacts {
  readonly settings: VrrpInstanceSettings;
  readonly state: InstanceState;
  /** Whether keepalived runs. */
  readonly isRunning: boolean;
  /** By how much the priority shall be lowered, for as long as keepalived has not told it. */
  readonly lowered: number;
  /** Everything that goes with it, anchors and VIPs, as far as keepalived was seen to have it. */
  readonly held: number;
}

export function instanceStatus({
  settings,
  state,
  isRunning,
  lowered,
  held,
}: InstanceFacts): VrrpInstanceStatus {
  const { virtualRouterId, priority, anchors } = settings;
  return {
    name: instanceName(virtualRouterId),
    virtualRouterId,
    state: isRunning ? state.state : 'unknown',
    since: state.since?.toISOString() ?? '',
    transitions: state.transitions,
    priority: state.priority || Math.max(1, priority - lowered),
    anchors,
    vips: Math.max(0, held - anchors.length),
  };
}
