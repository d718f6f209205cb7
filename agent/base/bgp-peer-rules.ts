// The fields of a router that gets routes by BGP, alike in the setting `bgp` and in a BGPPeer, and which of their values do not
// go together. Pure.

import { community, largeCommunity } from './communities.ts';
import { familyOf, parseAddress } from './ip.ts';
import { boolean, listOf, object, oneOf, textReader, textRule, type Valid, wholeNumber } from './validate.ts';

/** So many routers get the routes of a host at most. */
export const MAX_PEERS = 16;
const MAX_COMMUNITIES = 16;
/** ASNs that no network has (RFC 7607, 6793, 7300). */
const RESERVED_ASNS: readonly number[] = [0, 23_456, 65_535, 4_294_967_295];
const MOST_MILLISECONDS = 10_000;

export const asn = wholeNumber(1, 4_294_967_294)
  .refine((value, refuse) => {
    if (RESERVED_ASNS.includes(value)) refuse([], `${value} is a reserved ASN`);
  })
  .meta({
    format: 'int64',
    'x-kubernetes-validations': [
      { rule: 'self != 23456 && self != 65535', message: 'must not be a reserved ASN' },
    ],
  });

/** Unspecified, loopback, multicast and reserved: BIRD refuses its whole file for some of them. */
const NOT_OF_A_HOST = /^(0|127|22[4-9]|2[3-5]\d)\.|^(::1?$|ff)/;

const address = textReader((text) => {
  const canonical = parseAddress(text)?.address;
  return canonical === undefined || NOT_OF_A_HOST.test(canonical) ? undefined : canonical;
}, 'is not the IP address of a host').meta({
  type: 'string',
  maxLength: 45,
  pattern: '^[0-9A-Fa-f:.]+$',
  'x-kubernetes-validations': [
    {
      rule: "isIP(self) && !self.matches('^(0|127|22[4-9]|2[3-5][0-9])[.]') && (self.contains('.') || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast())",
      message: 'must be the IP address of a host',
    },
  ],
});

const interval = textReader((text) => {
  const [, digits, unit] = /^([0-9]{1,5})(ms|s)$/.exec(text) ?? [];
  const value = Number(digits) * (unit === 's' ? 1000 : 1);
  return digits !== undefined && value >= 10 && value <= MOST_MILLISECONDS ? value : undefined;
}, 'is not a duration with its unit (ms or s) from 10ms to 10s').meta({
  type: 'string',
  maxLength: 7,
  pattern: '^([1-9][0-9]{1,3}ms|10000ms|[1-9]s|10s)$',
});

export const bfdTimes = object({
  interval: interval
    .meta({ description: 'Between two packets: 300ms without it. The longer one of both ends counts.' })
    .or(300),
  multiplier: wholeNumber(2, 50)
    .meta({ description: 'The router is dead after so many missing packets: 3 without it.' })
    .or(3),
});

export const peerFields = {
  address: address.meta({ description: 'Of the router; with a link-local address also "interface".' }),
  interface: textRule(
    (text) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/.test(text),
    'is not the name of a network interface',
  )
    .meta({
      maxLength: 15,
      pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]*$',
      description: 'Of each host, for a link-local address.',
    })
    .or(''),
  source: address.meta({ description: 'The address of the host.' }).or(''),
  localPort: wholeNumber(1, 65_535)
    .meta({ description: 'The router connects to this port of "source"; 179 without it.' })
    .or(179),
  asn: asn.meta({ description: 'Of the router.' }),
  port: wholeNumber(1, 65_535).meta({ description: 'Of the router; 179 without it.' }).or(179),
  families: listOf(oneOf('ipv4', 'ipv6'))
    .meta({
      maxItems: 2,
      description: 'By default that of the address, with a link-local address both.',
    })
    .or([]),
  multihop: wholeNumber(0, 255)
    .meta({ description: 'The router is at most so many hops away; 0: on the same network.' })
    .or(0),
  ttlSecurity: boolean()
    .meta({ description: 'Packets from further away do not count (RFC 5082).' })
    .or(false),
  communities: listOf(community)
    .meta({
      maxItems: MAX_COMMUNITIES,
      description: 'Added to the routes: 65001:100, no-export, no-advertise.',
    })
    .or([]),
  largeCommunities: listOf(largeCommunity)
    .meta({ maxItems: MAX_COMMUNITIES, description: 'Added to the routes: 65001:1:2 (RFC 8092).' })
    .or([]),
  localPreference: wholeNumber(1, 4_294_967_295)
    .meta({ format: 'int64', description: 'For a router of the own ASN.' })
    .nullish(),
  prepends: wholeNumber(0, 5)
    .meta({ description: 'The own ASN so many times more in the path, for another ASN.' })
    .or(0),
};

const allFields = object(peerFields);
type Fields = Readonly<Valid<typeof allFields>>;

/** `families`: those that the peer gets. */
type Judged = Omit<Fields, 'families' | 'communities' | 'largeCommunities'> & {
  readonly families: readonly ('v4' | 'v6')[];
  readonly bfd: unknown;
};

export interface FieldFault {
  readonly field: string;
  readonly fault: string;
}

/** The faults of a peer's values that are valid one by one. `own`: the ASN of this host. */
export function peerFaults(peer: Judged, own: number): readonly FieldFault[] {
  const { address: theirs, interface: link, source, multihop, families } = peer;
  const found: readonly (readonly [isWrong: boolean, field: string, fault: string])[] = [
    [
      isLinkLocal(theirs) && link === '',
      'interface',
      `missing, must name the interface of the link-local address ${theirs}`,
    ],
    [
      !isLinkLocal(theirs) && link !== '',
      'interface',
      `"${link}" is only for a link-local address, and ${theirs} is none`,
    ],
    [
      source !== '' && familyOf(source) !== familyOf(theirs),
      'source',
      `"${source}" is not of the family of address "${theirs}"`,
    ],
    [source === theirs, 'source', `"${source}" is the address of the peer`],
    [
      peer.localPort !== 179 && source === '',
      'source',
      `missing, must be an address of this host that localPort ${peer.localPort} is of`,
    ],
    [
      multihop > 0 && isLinkLocal(theirs),
      'multihop',
      `${multihop} is not possible with a link-local address`,
    ],
    [
      multihop > 0 && peer.bfd !== undefined && source === '',
      'source',
      'missing, must be an address of this host: BFD over several hops needs it',
    ],
    [
      families.includes('v6') && !theirs.includes(':'),
      'families',
      'ipv6 needs a session over IPv6: add a peer with an IPv6 address',
    ],
    [
      families.includes('v4') && theirs.includes(':') && !isLinkLocal(theirs),
      'families',
      'ipv4 needs a session over IPv4, or one with a link-local address: add a peer with an IPv4 address',
    ],
    [
      peer.localPreference !== undefined && peer.asn !== own,
      'localPreference',
      `${peer.localPreference} is only for a peer of this host's own ASN, ${own}, not of ${peer.asn}`,
    ],
    [
      peer.prepends > 0 && peer.asn === own,
      'prepends',
      `${peer.prepends} is only for a peer of another ASN than this host's own, ${own}`,
    ],
  ];
  return found.flatMap(([isWrong, field, fault]) => (isWrong ? [{ field, fault }] : []));
}

/** The families of a peer that asks for these. */
export function familiesOf(address: string, asked: Fields['families']): readonly ('v4' | 'v6')[] {
  const given = new Set(asked.map((family) => (family === 'ipv4' ? ('v4' as const) : ('v6' as const))));
  if (given.size > 0) return [...given].sort();
  // A link-local session carries both: no address of this host is needed for either.
  return isLinkLocal(address) ? ['v4', 'v6'] : [familyOf(address)];
}

/** What no two peers of a host may share: BIRD tells sessions apart by it. */
export function placeOfPeer({ address, interface: link }: Pick<Fields, 'address' | 'interface'>): string {
  return `${address}${link && `%${link}`}`;
}

function isLinkLocal(address: string): boolean {
  return address.startsWith('fe80:');
}
