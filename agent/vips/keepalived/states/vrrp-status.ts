// The state of VRRP on this host, for status and metrics. Pure.

import type { MetricFamily } from '../../../base/metric-family.ts';
import {
  instanceName,
  loweredBy,
  VRRP_STATES,
  type VrrpInstanceStatus,
  type VrrpSettings,
  type VrrpStatus,
} from '../../vrrp.ts';
import type { VrrpStates } from './vrrp-states.ts';

export interface VrrpFacts
  extends Pick<VrrpStatus, 'auth' | 'lowered' | 'rivals' | 'refused' | 'unready' | 'fault'> {
  readonly vrrp: VrrpSettings;
  readonly states: Pick<VrrpStates, 'of'>;
  readonly daemon: { readonly version: string; readonly pid: number; readonly isVerified: boolean };
  /** The addresses in keepalived.conf, anchors and VIPs, by instance. */
  readonly held: ReadonlyMap<string, ReadonlySet<string>>;
}

export function vrrpStatus(facts: VrrpFacts): VrrpStatus {
  const { vrrp, states, daemon, held, auth, lowered, rivals, refused, unready, fault } = facts;
  const instances = vrrp.instances.map(({ virtualRouterId, priority, anchors }): VrrpInstanceStatus => {
    const name = instanceName(virtualRouterId);
    const { state, since, transitions, priority: reported } = states.of(name);
    return {
      name,
      virtualRouterId,
      state: daemon.pid === 0 ? 'unknown' : state,
      since: since?.toISOString() ?? '',
      transitions,
      // Until keepalived reports a priority, the priority that it should have.
      priority: reported || Math.max(1, priority - loweredBy(lowered)),
      anchors,
      vips: daemon.isVerified ? Math.max(0, (held.get(name)?.size ?? 0) - anchors.length) : 0,
    };
  });
  const vips = instances.reduce((sum, each) => sum + each.vips, 0);
  const { version, pid } = daemon;
  return { version, pid, auth, instances, vips, lowered, rivals, refused, unready, fault };
}

/** As of the last dump, which is read at each audit and after each transition. */
export function vrrpFamilies({ instances }: VrrpSettings, states: Pick<VrrpStates, 'of'>): MetricFamily[] {
  const rows = instances.map(({ virtualRouterId }) => {
    const name = instanceName(virtualRouterId);
    return { labels: `vrrp_instance="${name}"`, ...states.of(name) };
  });
  const stateOf = (row: unknown) => row as (typeof rows)[number];
  return [
    {
      name: 'headgate_vrrp_transitions_total',
      type: 'counter',
      help: 'Transitions of VRRP instances, by the state that was reached',
      parts: VRRP_STATES.map((state) => ({
        labels: `state="${state}"`,
        rows,
        value: (row) => stateOf(row).reached[state],
      })),
    },
    ...(['sent', 'received'] as const).map(
      (which): MetricFamily => ({
        name: `headgate_vrrp_advertisements_${which}_total`,
        type: 'counter',
        help: `Advertisements of the VRRP instance that this host has ${which}`,
        parts: [{ labels: '', rows, value: (row) => stateOf(row).adverts[which] }],
      }),
    ),
  ];
}
