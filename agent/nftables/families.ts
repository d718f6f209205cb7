// The metrics of the kernel's listeners, with the names and labels that HAProxy's have. Pure.

import { familyOf, type MetricFamily, type MetricsDetail } from '../base/metric-family.ts';
import { listenerSeries, memberSeries } from '../dataplane/series-labels.ts';
import type { Listener, Member } from '../model/load-balancer.ts';
import { isCheckedByUdp } from './checks/udp-checks.ts';
import { type ListenerCounts, NO_LISTENER_COUNTS } from './rules/counts.ts';
import type { DownMembers } from './rules/kernel-listener.ts';

interface Row {
  readonly labels: string;
  readonly counts: ListenerCounts;
  readonly members: number;
  /** New flows are not refused for want of a ready member. */
  readonly isOpen: boolean;
}

export interface KernelFacts {
  /** By listener, until now. */
  readonly counts: ReadonlyMap<string, ListenerCounts>;
  /** Whether they have packets and bytes, and not new flows only. */
  readonly countsTraffic: boolean;
  /** The kernel forwards them. */
  readonly isUp: boolean;
  readonly down: (listener: Listener) => DownMembers;
  readonly detail: MetricsDetail;
}

/** HAProxy gives the metrics of members that it checks. */
export function kernelFamilies(
  listeners: readonly Listener[],
  { counts, countsTraffic, isUp, down, detail }: KernelFacts,
): readonly MetricFamily[] {
  if (listeners.length === 0) return [];
  const rows = listeners.map(
    (listener): Row => ({
      labels: listenerSeries(listener),
      counts: counts.get(listener.name) ?? NO_LISTENER_COUNTS,
      members: listener.pool.members.filter((member) => isUpMember(member, down(listener))).length,
      isOpen: isUp && listener.pool.members.some(({ state }) => state === 'ready'),
    }),
  );
  const families = [
    familyOf(
      'headgate_listener_up',
      'gauge',
      'Whether the listener accepts connections: not without a ready member, unless it answers 503 in http mode',
      rows,
      ({ isOpen }) => Number(isOpen),
    ),
    familyOf(
      'headgate_listener_connections_total',
      'counter',
      'Connections to the listener, also those that were denied',
      rows,
      (row) => row.counts.flows.packets,
    ),
    familyOf(
      'headgate_pool_active_members',
      'gauge',
      'Members of the pool that accept connections',
      rows,
      (row) => row.members,
    ),
  ];
  // Answers of direct members do not pass this host.
  const answered = rows.filter((_, at) => listeners[at]?.sourceAddress !== 'direct');
  if (countsTraffic) families.push(...trafficFamilies(rows, answered));
  const ofUdp = detail === 'member' ? listeners.filter(isCheckedByUdp) : [];
  if (ofUdp.length === 0) return families;
  const members = ofUdp.flatMap((listener) =>
    listener.pool.members.map((member) => ({
      labels: memberSeries(listener, member.name, member),
      isUp: Number(isUpMember(member, down(listener))),
    })),
  );
  const help = 'Whether the member accepts new connections';
  return [...families, familyOf('headgate_member_up', 'gauge', help, members, (row) => row.isUp)];
}

/** Families of bytes have the names that HAProxy's have. */
function trafficFamilies(rows: readonly Row[], answered: readonly Row[]): readonly MetricFamily[] {
  const counter = (name: string, help: string, value: (counts: ListenerCounts) => number): MetricFamily => {
    const counted = name.startsWith('sent') ? answered : rows;
    return familyOf(`headgate_listener_${name}_total`, 'counter', help, counted, (row) => value(row.counts));
  };
  return [
    counter('received_bytes', 'Bytes from clients through the listener', ({ received }) => received.bytes),
    counter('sent_bytes', 'Bytes to clients through the listener', ({ sent }) => sent.bytes),
    counter(
      'received_packets',
      'Packets from clients through the listener; kernel path only',
      ({ received }) => received.packets,
    ),
    counter(
      'sent_packets',
      'Packets to clients through the listener; kernel path only',
      ({ sent }) => sent.packets,
    ),
  ];
}

function isUpMember({ name, state }: Member, down: DownMembers): boolean {
  return state === 'ready' && !down.has(name);
}
