// Renders the file of BIRD from the settings, and the routes of VIPs for the files that it includes. Pure, except that it
// reads the template at start.
//
// A route that routers should not prefer has the community GRACEFUL_SHUTDOWN (RFC 8326); the filter of a peer of another AS makes its path
// longer too, that of the own AS its preference lower, where the own ASN in the path would be taken for a loop.

import { hash } from 'node:crypto';
import { loadTemplate, type View } from '../../base/template.ts';
import type { HostGroup } from '../../model/host-group.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { BgpPeer, BgpSettings, VipRoute, Worn } from '../bgp.ts';
import type { AnchorRoute } from '../host-anchors.ts';
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
    peers: bgp.peers.map((peer) => ({
      ...peerView(bgp, peer, passwords.get(peer.name) ?? ''),
      ranks: rankViews(bgp, peer, group),
    })),
  });
}

/** BIRD's name of the session; a bare name could be a keyword of BIRD. */
export function protocolOf(peer: Pick<BgpPeer, 'name'>): string {
  return `hg_${peer.name.replaceAll('-', '_')}`;
}

/** Undefined for a VIP of which no pool says anything. */
export type RouteSpec = (address: string) => VipRoute | undefined;

/** The routes of one family, with their aggregates. The same VIPs in any order give the same text. */
export function renderVips(
  vips: Iterable<readonly [address: string, worn: Worn]>,
  family: Family,
  routeSpec: RouteSpec = () => undefined,
): string {
  const isV6 = family === 'v6';
  const lines: string[] = [];
  const aggregates = new Map<string, { readonly worn: Worn; readonly rules: VipRoute }>();
  for (const [address, worn] of vips) {
    if (address.includes(':') !== isV6) continue;
    const rules = routeSpec(address);
    lines.push(`route ${address}/${isV6 ? 128 : 32} blackhole${attributes(worn, rules)};\n`);
    if (rules === undefined || rules.aggregate === '') continue;
    // One VIP that this host serves well is enough.
    if (aggregates.get(rules.aggregate)?.worn !== 'first') aggregates.set(rules.aggregate, { worn, rules });
  }
  for (const [network, { worn, rules }] of aggregates)
    lines.push(`route ${network} blackhole${attributes(worn, rules)};\n`);
  return lines.sort().join('');
}

/** What makes a route the last choice, as BIRD shows it, too. */
export const LAST = '(65535, 0)';

/** No other route has an extended community: these name the peers that get the route, and never leave. */
const MARK = '0x43484700';

/** On routes to anchors: how far this host is from the one that has it. */
const RANK = '0x43484701';

/** The routes to the anchors, of one family. */
export function renderAnchors(anchors: readonly AnchorRoute[], family: Family): string {
  return anchors
    .filter(({ address }) => address.includes(':') === (family === 'v6'))
    .map(
      ({ address, rank }) =>
        `route ${address}/${family === 'v6' ? 128 : 32} blackhole { bgp_ext_community.add((generic, ${RANK}, ${rank})); };\n`,
    )
    .join('');
}

export function isAnchorRoute(line: string): boolean {
  return line.includes(`(generic, ${RANK}, `);
}

/** A longer path or, in the own AS, a lower preference for each host in between. */
function rankViews(bgp: BgpSettings, peer: BgpPeer, group: HostGroup | undefined): readonly View[] {
  const { hosts = [] } = group ?? {};
  if (hosts.every(({ anchors }) => anchors.length === 0)) return [];
  const preference = peer.localPreference ?? DEFAULT_PREFERENCE;
  const isExternal = peer.asn !== bgp.asn;
  return hosts.map((_, at) => ({
    rankMark: RANK,
    rank: at + 1,
    isExternal,
    preference: Math.max(0, preference - at - 1),
    repeated: Array.from({ length: at + 1 }, () => ({ asn: bgp.asn })),
  }));
}

/** The same for a name whichever other peers there are, because routes and peers are in different files. */
function markOf(peer: string): string {
  return `(generic, ${MARK}, ${Number.parseInt(hash('sha256', peer).slice(0, 8), 16)})`;
}

function attributes(worn: Worn, rules: VipRoute | undefined): string {
  const { peers = [], communities = [], largeCommunities = [], localPreference } = rules ?? {};
  const parts = [
    ...(worn === 'last' ? [`bgp_community.add(${LAST});`] : []),
    ...communities.map((each) => `bgp_community.add((${each.replaceAll(':', ', ')}));`),
    ...largeCommunities.map((each) => `bgp_large_community.add((${each.replaceAll(':', ', ')}));`),
    ...(localPreference === undefined ? [] : [`bgp_local_pref = ${localPreference};`]),
    ...peers.map((each) => `bgp_ext_community.add(${markOf(each)});`),
  ];
  return parts.length === 0 ? '' : ` { ${parts.join(' ')} }`;
}

function peerView(bgp: BgpSettings, peer: BgpPeer, password: string): View {
  const protocol = protocolOf(peer);
  const common = { asn: bgp.asn };
  const aggregatesOf = (isV6: boolean) => {
    const list = bgp.aggregates.filter((each) => each.includes(':') === isV6).join(', ');
    return list === '' ? false : [{ list }];
  };
  const repeated = (times: number): readonly View[] => Array.from({ length: times }, () => common);
  const isExternal = peer.asn !== bgp.asn;
  return {
    ...common,
    name: peer.name,
    protocol,
    mark: MARK,
    ownMark: markOf(peer.name),
    aggregates4: aggregatesOf(false),
    aggregates6: aggregatesOf(true),
    isExternal: isExternal && [
      { ...common, prepends: repeated(peer.prepends), lastPrepends: repeated(LAST_PREPENDS) },
    ],
    localPreference: peer.localPreference ?? DEFAULT_PREFERENCE,
    communities: peer.communities.map((each) => ({ pair: each.replaceAll(':', ', ') })),
    largeCommunities: peer.largeCommunities.map((each) => ({ triple: each.replaceAll(':', ', ') })),
    source: peer.source,
    isStrict: peer.localPort !== 179 && [{ localPort: peer.localPort }],
    neighbor: peer.address,
    interface: peer.interface,
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
