// The nftables rules of a host that takes over VIPs: its own connections and new ones stay here, all others are passed on
// to its peer. Pure: from values to texts for `nft -f`.
//
// At the ingress of the interface the frame gets another destination and the packet stays unchanged, so that the peer
// answers the client itself. Frames from the peer are never passed back. The VIPs in the rules time out.

import { loadTemplate } from '../../base/template.ts';
import type { Link } from '../peers/report.ts';
import type { Connection } from './connections.ts';

export interface Diversion {
  readonly table: string;
  readonly device: string;
  readonly peer: Link;
  readonly vips: readonly string[];
  /** Ports that the kernel forwards: the new host goes on with their connections by itself. */
  readonly forwarded: readonly ForwardedPort[];
  /** The connections of this host. */
  readonly own: readonly Connection[];
  /** Until the VIPs time out. */
  readonly seconds: number;
}

export interface ForwardedPort {
  readonly address: string;
  readonly port: number;
}

const template = loadTemplate('pair/diversion');

/** Per family: a host that has more connections passes the newest on to the peer as well. */
const MAX_CONNECTIONS = 262_144;

const FAMILIES = [
  { family: 'v4', ip: 'ip', type: 'ipv4_addr' },
  { family: 'v6', ip: 'ip6', type: 'ipv6_addr' },
] as const;

/** Replaces the table if there is one. A family in which the peer has no address is left out. */
export function renderDiversion({ table, device, peer, vips, forwarded, own, seconds }: Diversion): string {
  const families = FAMILIES.filter(({ family }) => peer[family] !== '').map(({ family, ...words }) => {
    const isOf = (address: string): boolean => address.includes(':') === (family === 'v6');
    const vipsOf = vips.filter(isOf).map((vip) => `${vip} timeout ${seconds}s`);
    const forwardedOf = forwarded
      .filter(({ address }) => isOf(address))
      .map(({ address, port }) => `${address} . ${port}`);
    const ownOf = own
      .filter(({ vip }) => isOf(vip))
      .slice(0, MAX_CONNECTIONS)
      .map(({ client, clientPort, vip, port }) => `${client} . ${clientPort} . ${vip} . ${port}`);
    return {
      ...words,
      table,
      family,
      device,
      peer: peer[family],
      most: MAX_CONNECTIONS,
      // A connection counts as the host's own for as long as its VIP is in the rules.
      memory: seconds * 2,
      hasVips: vipsOf.length > 0,
      vips: vipsOf,
      hasForwarded: forwardedOf.length > 0,
      forwarded: forwardedOf,
      hasOwn: ownOf.length > 0,
      own: ownOf,
    };
  });
  return template({ table, device, ether: peer.ether, families });
}

/** Also if there is no table. */
export function renderRemoval(table: string): string {
  return `table netdev ${table}\ndelete table netdev ${table}\n`;
}
