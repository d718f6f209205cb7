// What the flows of the kernel path show to be wrong, in words, with the remedy. Pure.

import type { SourceGroups } from '../../model/source-groups.ts';
import type { KernelListener } from '../rules/kernel-listener.ts';
import { type FlowCounts, type Silence, SOURCE_PORTS } from './flow-counts.ts';

const MAX_NAMES = 3;

/** Why new flows are dropped, or about to be, with the remedy; '' if every source address has ports. */
export function whyShort({ fullest }: FlowCounts): string {
  if (fullest === undefined) return '';
  const { source, protocol, member, flows } = fullest;
  const remedy = 'add addresses to "anchors" of the setting "vrrp", or members to the Service';
  return `${source} has ${flows} flows of ${protocol} to ${member}, and ports for ${SOURCE_PORTS}: ${remedy}`;
}

/** What the author of a Service, and the operator of its members, can do about members that do not answer. */
export function silenceInWords({ listener, members }: Silence, sources: SourceGroups): string {
  const { protocol, port } = listener;
  const names = members.slice(0, MAX_NAMES).map(({ name }) => name);
  const more = members.length > names.length ? ` and ${members.length - names.length} more` : '';
  return `Members of ${protocol} port ${port} get packets, but none of their answers comes back through this host: ${names.join(', ')}${more}; their route to the clients must lead to ${nextHop(listener, sources)}, or "headgate.io/source-address" be "load-balancer"`;
}

/** The next hop that the route of members to the clients must have in gateway mode. */
export function nextHop({ addresses, family }: KernelListener, { groups, groupOf }: SourceGroups): string {
  const [vip = ''] = addresses;
  const anchors = groups.find(({ id }) => id === groupOf(vip))?.addresses ?? [];
  return anchors.find((each) => each.includes(':') === (family === 'v6')) ?? 'this host';
}
