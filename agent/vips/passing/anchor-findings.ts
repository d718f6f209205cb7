// What the anchors of the setting `hosts` need, so that another host can take over connections of a dead one. Pure.

import { addressesOf, hasAddress } from '../../base/address-set.ts';
import { familyOf } from '../../base/ip.ts';
import { bad, type Finding, good } from '../../host/finding.ts';
import type { HostGroup } from '../../model/host-group.ts';
import type { BgpPeer } from '../bgp.ts';

export interface AnchorFacts {
  /** The networks of each interface, as CIDRs. */
  readonly networks: ReadonlyMap<string, readonly string[]>;
  /** By nf_conntrack_tcp_be_liberal. */
  readonly isLiberal: boolean;
}

export function anchorFindings(
  { hosts }: Pick<HostGroup, 'hosts'>,
  peers: readonly Pick<BgpPeer, 'families'>[],
  { networks, isLiberal }: AnchorFacts,
): readonly Finding[] {
  const anchors = hosts.flatMap((host) => host.anchors);
  if (anchors.length === 0) return [];
  const faults: Finding[] = [];
  for (const family of new Set(anchors.map(familyOf)))
    if (!peers.some(({ families }) => families.includes(family)))
      faults.push(
        bad(
          'anchors',
          `no peer of the setting bgp takes routes of ${family === 'v4' ? 'IPv4' : 'IPv6'}: members' packets need a way to the anchors`,
        ),
      );
  for (const [device, cidrs] of networks)
    for (const anchor of anchors) {
      if (hasAddress(addressesOf(cidrs, familyOf(anchor)), anchor))
        faults.push(
          bad(
            'anchors',
            `${anchor} is in the network of ${device}, where every host would answer for it: use an address outside of all networks of the hosts, to which only routers have a way`,
          ),
        );
    }
  if (isLiberal)
    faults.push(
      bad(
        'nf_conntrack_tcp_be_liberal',
        'is not 0, so that a host takes packets of connections of another host for those of clients that used the same port before: set it to 0 (sysctl -w net.netfilter.nf_conntrack_tcp_be_liberal=0)',
      ),
    );
  return faults.length > 0 ? faults : [good('anchors', anchors.join(', '))];
}
