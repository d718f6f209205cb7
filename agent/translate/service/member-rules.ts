// Refuses members that a Service must not send to, whatever its EndpointSlices say: a VIP and port of this load balancer, a port of
// the agents themselves, a cloud's metadata service, an address of many machines, and what the settings exclude. Pure.

import { BlockList } from 'node:net';
import { memoByIdentity } from '../../base/memo.ts';
import type { Member, Protocol } from '../../model/load-balancer.ts';
import type { PortAddress } from '../../model/port-owners.ts';
import { isOfAgent } from '../agent-ports.ts';
import type { MemberRules } from '../translate-settings.ts';

export interface RefusedMember {
  readonly member: Member;
  /** As the end of a sentence that begins with the member. */
  readonly reason: string;
  /** Another Service, or this one, listens on the member's address and port. */
  readonly isVip: boolean;
}

/**
 * Metadata services outside the link-local addresses, which the schema of EndpointSlices refuses: those of Azure, Alibaba
 * Cloud, Oracle, AWS, Google Cloud and Scaleway; and IPv4 ones, link-local ones too, through NAT64 (RFC 6052, RFC 8215) and
 * 6to4 (RFC 3056).
 */
const METADATA_SERVICE = new RegExp(
  [
    '^168\\.63\\.129\\.16$',
    '^100\\.100\\.100\\.200$',
    '^192\\.0\\.0\\.192$',
    '^fd00:ec2::[0-9a-f]+$',
    '^fd20:ce::254$',
    '^fd00:42::42$',
    '^64:ff9b:(1:)?:(a9fe:[0-9a-f]+|a83f:8110|6464:64c8|c000:c0)$',
    '^2002:(a9fe:|a83f:8110|6464:64c8|c000:c0(:|$))',
  ].join('|'),
);

/** Multicast, and broadcast, by which the kernel path would lead clients to whatever listens on all addresses of this host. */
const GROUP = /^(22[4-9]|23\d)\.|^255\.255\.255\.255$|^ff[0-9a-f]{2}:/;

/** `isListening`: true if a load balancer of this agent listens there. Returns `members` itself if all may be used. */
export function usableMembers(
  members: readonly Member[],
  protocol: Protocol,
  rules: MemberRules,
  isListening: (port: PortAddress) => boolean,
): { readonly usable: readonly Member[]; readonly refused: readonly RefusedMember[] } {
  const refused: RefusedMember[] = [];
  const usable = members.filter((member) => {
    const { address, port } = member;
    const isVip = isListening({ address, protocol, port });
    const reason = isVip
      ? 'this load balancer listens there itself, and a connection would come back to it without end'
      : whyRefused(member, protocol, rules);
    if (reason !== undefined) refused.push({ member, reason, isVip });
    return reason === undefined;
  });
  return { usable: refused.length === 0 ? members : usable, refused };
}

function whyRefused(member: Member, protocol: Protocol, rules: MemberRules): string | undefined {
  const { address, port, target } = member;
  const { refusedMembers, memberRanges, membersWithoutTarget, agentPorts } = rules;
  if (isOfAgent(agentPorts, { address, protocol, port }))
    return 'the agent of this load balancer, or of its peer, listens there';
  if (METADATA_SERVICE.test(address)) return "it is the address of a cloud's metadata service";
  if (GROUP.test(address)) return 'it is a multicast or broadcast address';
  if (refusedMembers.length > 0 && isWithin(refusedMembers, address))
    return 'the setting refusedMembers has its address';
  if (memberRanges.length > 0 && !isWithin(memberRanges, address))
    return 'the setting memberRanges does not have its address';
  if (!membersWithoutTarget && target === '')
    return 'it has no targetRef, and the setting membersWithoutTarget is off';
  return undefined;
}

function isWithin(cidrs: readonly string[], address: string): boolean {
  return blockListOf(cidrs).check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

const blockListOf = memoByIdentity((cidrs: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = '', prefix] = cidr.split('/');
    list.addSubnet(network, Number(prefix), network.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
});
