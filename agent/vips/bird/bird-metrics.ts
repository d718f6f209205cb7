// The metrics of BGP, with the names of the common exporter of BIRD: https://github.com/czerwonk/bird_exporter

import type { MetricFamily, MetricRow } from '../../base/metric-family.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { BgpSettings, BgpStatus } from '../bgp.ts';
import { protocolOf } from './render.ts';
import type { ProtocolFacts } from './session-facts.ts';

interface Row extends MetricRow {
  readonly value: number;
}

export interface BgpFacts {
  readonly bgp: BgpSettings;
  /** By the name of the protocol. */
  readonly facts: ReadonlyMap<string, ProtocolFacts>;
  readonly status: Pick<BgpStatus, 'vips' | 'sessions'>;
  /** How often sessions have ended, by the name of the peer. */
  readonly losses: ReadonlyMap<string, number>;
  /** The VIPs that this host announces, with the number of routers that have each. */
  readonly routers: readonly (readonly [vip: string, routers: number])[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export function bgpFamilies({ bgp, facts, status, losses, routers, now }: BgpFacts): readonly MetricFamily[] {
  const channels = bgp.peers.flatMap((peer) =>
    peer.families.map((family) => ({ peer, family, facts: facts.get(protocolOf(peer)) })),
  );
  const rows = (value: (facts: ProtocolFacts | undefined, family: Family) => number): readonly Row[] =>
    channels.map(({ peer, family, facts: own }) => ({
      labels: `proto="BGP",name="${peer.name}",ip_version="${family.slice(1)}"`,
      value: value(own, family),
    }));
  const withBfd = bgp.peers.filter(({ bfd }) => bfd !== undefined);
  return [
    gauge(
      'bird_protocol_up',
      'Whether the session with a router is established, for each peer and IP version',
      rows((own) => (own?.state === 'Established' ? 1 : 0)),
    ),
    gauge(
      'bird_protocol_uptime',
      'Seconds since the session was established; 0 if it is not',
      rows((own) => (own?.state === 'Established' ? Math.max(0, Math.round((now - own.since) / 1000)) : 0)),
    ),
    gauge(
      'bird_protocol_prefix_export_count',
      'Routes that the router has of this host',
      rows((own, family) => own?.exported[family] ?? 0),
    ),
    gauge(
      'bird_protocol_prefix_import_count',
      'Routes that this host has taken from the router: always 0',
      rows((own, family) => own?.imported[family] ?? 0),
    ),
    gauge(
      'bird_bfd_session_up',
      'Whether the session of BFD with a router is up, for each peer that has one',
      withBfd.map(({ name, address }) => ({
        labels: `name="${name}",ip="${address}"`,
        value: status.sessions.find(({ peer }) => peer === name)?.bfd === 'Up' ? 1 : 0,
      })),
    ),
    gauge(
      'headgate_bgp_vips',
      'VIPs by how their routes are announced: first, last (another host is preferred) or withheld',
      Object.entries(status.vips).map(([worn, value]) => ({ labels: `worn="${worn}"`, value })),
    ),
    gauge(
      'headgate_bgp_vip_routers',
      'Routers that have a route to the VIP by this host, for each VIP that it announces',
      routers.map(([vip, value]) => ({ labels: `vip="${vip}"`, value })),
    ),
    {
      ...gauge(
        'headgate_bgp_session_losses_total',
        'Sessions with the router that have ended after they were established',
        bgp.peers.map(({ name }) => ({ labels: `name="${name}"`, value: losses.get(name) ?? 0 })),
      ),
      type: 'counter',
    },
  ];
}

function gauge(name: string, help: string, rows: readonly Row[]): MetricFamily {
  return {
    name,
    type: 'gauge',
    help,
    parts: [{ labels: '', rows, value: (row) => (row as Row).value }],
  };
}
