// The nftables rules of a host that takes VIPs over: connections that are made with it from now on are its own, and so
// are those that it has already; all others are passed on to its peer. Pure: from values to texts for `nft -f`.
//
// They stand at the ingress of the interface, where a frame is given another destination and the packet stays as it is:
// the peer answers the client itself. What the peer passes on is never passed back. The VIPs in the rules time out, so
// that what they do ends by itself.

import { loadTemplate } from '../../base/template.ts';
import type { Link } from '../peers/report.ts';
import type { Connection } from './connections.ts';

export interface Diversion {
  readonly table: string;
  readonly device: string;
  readonly peer: Link;
  readonly vips: readonly string[];
  /** What this host has already. */
  readonly own: readonly Connection[];
  /** For which the VIPs stand in it. */
  readonly seconds: number;
}

const template = loadTemplate('pair/diversion');

/** Connections that a host can know as its own, per family; what is new beyond them the peer goes on serving. */
const MOST = 262_144;

const FAMILIES = [
  { family: 'v4', ip: 'ip', type: 'ipv4_addr' },
  { family: 'v6', ip: 'ip6', type: 'ipv6_addr' },
] as const;

/** Replaces a table that is there. A family in which the peer has no address is left out. */
export function renderDiversion({ table, device, peer, vips, own, seconds }: Diversion): string {
  const families = FAMILIES.filter(({ family }) => peer[family] !== '').map(({ family, ...words }) => {
    const isOf = (address: string): boolean => address.includes(':') === (family === 'v6');
    const vipsOf = vips.filter(isOf).map((vip) => `${vip} timeout ${seconds}s`);
    const ownOf = own
      .filter(({ vip }) => isOf(vip))
      .slice(0, MOST)
      .map(({ client, clientPort, vip, port }) => `${client} . ${clientPort} . ${vip} . ${port}`);
    return {
      ...words,
      table,
      family,
      device,
      peer: peer[family],
      most: MOST,
      // A connection that is the host's own is so for as long as its VIP is here.
      memory: seconds * 2,
      hasVips: vipsOf.length > 0,
      vips: vipsOf,
      hasOwn: ownOf.length > 0,
      own: ownOf,
    };
  });
  return template({ table, device, ether: peer.ether, families });
}

/** Whether the table is there or not. */
export function renderRemoval(table: string): string {
  return `table netdev ${table}\ndelete table netdev ${table}\n`;
}
