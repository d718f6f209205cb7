// Renders the file of BIRD from the settings, and the routes of VIPs for the files that it includes. Pure, except that it
// reads the template at start.
//
// A route that routers should not prefer has the community GRACEFUL_SHUTDOWN (RFC 8326); the filter of a peer of another AS makes its path
// longer too, that of the own AS its preference lower, where the own ASN in the path would be taken for a loop.

import { loadTemplate, type View } from '../../base/template.ts';
import type { HostGroup } from '../../model/host-group.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { BgpPeer, BgpSettings, Worn } from '../bgp.ts';
import { HOST_BFD, watched } from './host-bfd.ts';
import type { BirdPaths } from './paths.ts';

const template = loadTemplate('bird/bird');

/** More than `prepends` of a peer can be, so that it outweighs any difference between hosts. */
const LAST_PREPENDS = 6;
/** As BIRD has it without a setting. */
const DEFAULT_PREFERENCE = 100;

/** `passwords`: by the name of the peer. `group`: the hosts that watch each other by BFD. */
export function renderBird(
  bgp: BgpSettings,
  paths: Pick<BirdPaths, 'vips'>,
  passwords: ReadonlyMap<string, string>,
  group?: HostGroup,
): string {
  const hosts = watched(group);
  const hasBfd = hosts.length > 0 || bgp.peers.some(({ bfd }) => bfd !== undefined);
  return template({
    routerId: bgp.routerId,
    vips4: paths.vips.v4,
    vips6: paths.vips.v6,
    // Sessions with routers have their own times.
    bfd: hasBfd && [
      { between: hosts.length > 0 && [{ ...HOST_BFD }], hosts: hosts.map((each) => ({ ...each })) },
    ],
    peers: bgp.peers.map((peer) => peerView(bgp, peer, passwords.get(peer.name) ?? '')),
  });
}

/** BIRD's name of the session; a bare name could be a keyword of BIRD. */
export function protocolOf(peer: Pick<BgpPeer, 'name'>): string {
  return `hg_${peer.name.replaceAll('-', '_')}`;
}

/** The routes of one family. The same VIPs in any order give the same text. */
export function renderVips(vips: Iterable<readonly [address: string, worn: Worn]>, family: Family): string {
  const isV6 = family === 'v6';
  return [...vips]
    .filter(([address]) => address.includes(':') === isV6)
    .map(([address, worn]) => `route ${address}/${isV6 ? 128 : 32} blackhole${attributes(worn)};\n`)
    .sort()
    .join('');
}

function attributes(worn: Worn): string {
  return worn === 'last' ? ' { bgp_community.add((65535, 0)); }' : '';
}

function peerView(bgp: BgpSettings, peer: BgpPeer, password: string): View {
  const protocol = protocolOf(peer);
  const isLinkLocal = peer.interface !== '';
  const common = { asn: bgp.asn };
  const repeated = (times: number): readonly View[] => Array.from({ length: times }, () => common);
  const isExternal = peer.asn !== bgp.asn;
  return {
    ...common,
    name: peer.name,
    protocol,
    isExternal: isExternal && [
      { ...common, prepends: repeated(peer.prepends), lastPrepends: repeated(LAST_PREPENDS) },
    ],
    localPreference: peer.localPreference ?? DEFAULT_PREFERENCE,
    communities: peer.communities.map((each) => ({ pair: each.replaceAll(':', ', ') })),
    largeCommunities: peer.largeCommunities.map((each) => ({ triple: each.replaceAll(':', ', ') })),
    source: peer.source,
    isStrict: peer.localPort !== 179 && [{ localPort: peer.localPort }],
    neighbor: isLinkLocal ? `${peer.address}%${peer.interface}` : peer.address,
    port: peer.port,
    peerAsn: peer.asn,
    multihop: peer.multihop,
    ttlSecurity: peer.ttlSecurity,
    password,
    holdSeconds: Math.round(bgp.holdTime / 1000),
    keepaliveSeconds: Math.max(1, Math.floor(bgp.holdTime / 3000)),
    bfd: peer.bfd === undefined ? false : [{ ...peer.bfd }],
    channels: peer.families.map((family) => ({
      channel: family === 'v4' ? 'ipv4' : 'ipv6',
      table: family === 'v4' ? 'announced4' : 'announced6',
      filter: `${protocol}_out`,
      routeLimit: bgp.routeLimit,
      extendedNextHop: family === 'v4' && peer.address.includes(':'),
    })),
  };
}
