// Settings of BGP and of a peer, with the defaults that the settings give.

import type { BgpPeer, BgpSettings } from '../../../agent/vips/bgp.ts';

export function bgpPeer(own: Partial<BgpPeer> = {}): BgpPeer {
  return {
    name: 'tor-a',
    address: '192.0.2.1',
    interface: '',
    source: '',
    localPort: 179,
    asn: 65_000,
    port: 179,
    families: ['v4'],
    passwordFile: '',
    multihop: 0,
    ttlSecurity: false,
    bfd: undefined,
    communities: [],
    largeCommunities: [],
    localPreference: undefined,
    prepends: 0,
    ...own,
  };
}

export function bgpSettings(own: Partial<BgpSettings> = {}): BgpSettings {
  return {
    asn: 65_001,
    routerId: '192.0.2.11',
    holdTime: 9_000,
    routeLimit: 10_000,
    withoutMembers: 'announce',
    aggregates: [],
    peers: [bgpPeer()],
    ...own,
  };
}
