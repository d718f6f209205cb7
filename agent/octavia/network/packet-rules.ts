// The rules of nftables for the interfaces of an amphora, in a table of their own that is always replaced whole: TCP, which
// HAProxy ends, is not tracked; members see UDP and SCTP from this host; an SR-IOV interface, which no security group of
// Neutron guards, accepts what the controller allows. Pure.

import { familyOf } from '../../base/ip.ts';
import type { InterfaceRule } from '../parts.ts';
import type { Plugged } from './wanted-interface.ts';

export const PACKET_TABLE = 'headgate_amphora';

/** The number of VRRP, because a minimal machine lacks /etc/protocols. */
const VRRP = 112;

/** The text for `nft -f`. Names of interfaces and values of rules have passed their allow-lists. */
export function packetRules(interfaces: readonly Plugged[]): string {
  const head = `table inet ${PACKET_TABLE}\ndelete table inet ${PACKET_TABLE}\n`;
  if (interfaces.length === 0) return head;
  const guarded = interfaces.filter(({ isSriov }) => isSriov);
  return `${head}table inet ${PACKET_TABLE} {
${notTracked(interfaces.filter(({ isSriov }) => !isSriov))}
  chain source {
    type nat hook postrouting priority srcnat + 10; policy accept;
    oifname ${setOf(interfaces)} meta l4proto { udp, sctp } masquerade
  }
${guarded.length === 0 ? '' : guards(guarded)}}
`;
}

/** Rules for an SR-IOV interface need the state of TCP connections. */
function notTracked(interfaces: readonly Plugged[]): string {
  if (interfaces.length === 0) return '';
  return `  chain untracked {
    type filter hook prerouting priority raw; policy accept;
    iifname ${setOf(interfaces)} meta l4proto tcp notrack
  }
  chain untracked_own {
    type filter hook output priority raw; policy accept;
    oifname ${setOf(interfaces)} meta l4proto tcp notrack
  }`;
}

/** Before the kernel path chooses a member, because the rules name the ports of listeners. */
function guards(interfaces: readonly Plugged[]): string {
  const chains = interfaces.map(
    ({ name, rules = [] }) => `  chain from_${name} {
    ct state established,related accept
    ct state invalid drop
    ip saddr 127.0.0.0/8 drop
    ip6 saddr ::1 drop
    icmp type destination-unreachable accept
    icmpv6 type { destination-unreachable, packet-too-big, nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } accept
    udp sport 67 udp dport 68 accept
    udp sport 547 udp dport 546 accept
${rules.map((rule) => `    ${ruleText(rule)} accept\n`).join('')}    drop
  }
`,
  );
  const jumps = interfaces.map(({ name }) => `    iifname "${name}" goto from_${name}\n`);
  return `${chains.join('')}  chain guard {
    type filter hook prerouting priority mangle; policy accept;
${jumps.join('')}  }
`;
}

function ruleText({ protocol, cidr, port }: InterfaceRule): string {
  const from = cidr === undefined ? '' : `${familyOf(cidr) === 'v4' ? 'ip' : 'ip6'} saddr ${cidr} `;
  if (protocol === 'VRRP') return `${from}meta l4proto ${VRRP}`;
  return `${from}${protocol.toLowerCase()} dport ${port}`;
}

function setOf(interfaces: readonly Plugged[]): string {
  return `{ ${interfaces.map(({ name }) => `"${name}"`).join(', ')} }`;
}
