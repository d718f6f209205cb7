// The kind of the setting `bgp`: a mapping in the settings file, or YAML text in a flag or variable. Pure.

import { resolve } from 'node:path';
import { community, largeCommunity } from '../base/communities.ts';
import { familyOf, parseAddress } from '../base/ip.ts';
import { peerName } from '../base/name-forms.ts';
import { unknownKeys } from '../base/nearest.ts';
import {
  boolean,
  faultsOf,
  isMapping,
  listOf,
  object,
  oneOf,
  Rule,
  textReader,
  textRule,
  type Valid,
  wholeNumber,
} from '../base/validate.ts';
import { parseYamlDocuments } from '../base/yaml.ts';
import { duration, MINUTE, SECOND } from '../translate/annotations/kinds.ts';
import type { Kind, Reading } from './kinds.ts';

const ALLOWED =
  'a mapping with asn, routerId, peers and optional holdTime, routeLimit and withoutMembers; or nothing';
/** Routers send traffic to a dead host for so long if there is no BFD. */
const HOLD_TIME = duration(3 * SECOND, 3 * MINUTE);
const BFD_INTERVAL = duration(10, 10 * SECOND);
const MAX_PEERS = 16;

/** ASNs that no network has (RFC 7607, 6793, 7300). */
const RESERVED_ASNS: readonly number[] = [0, 23_456, 65_535, 4_294_967_295];

const asn = wholeNumber(1, 4_294_967_294).refine((value, refuse) => {
  if (RESERVED_ASNS.includes(value)) refuse([], `${value} is a reserved ASN`);
});
const address = textReader((text) => parseAddress(text)?.address, 'is not an IP address');
const seconds = textReader((text) => {
  const read = HOLD_TIME.parse(text);
  return read !== undefined && read % SECOND === 0 ? read : undefined;
}, `is not ${HOLD_TIME.words}, in whole seconds`);

const bfdTimes = object({
  interval: textReader((text) => BFD_INTERVAL.parse(text), `is not ${BFD_INTERVAL.words}`).default(300),
  multiplier: wholeNumber(2, 50).default(3),
});
/** `true` stands for the times by default. */
const bfd = new Rule<Valid<typeof bfdTimes> | undefined>(
  (value, faults) =>
    typeof value === 'boolean'
      ? value
        ? { interval: 300, multiplier: 3 }
        : undefined
      : bfdTimes.read(value, faults),
  { anyOf: [{ type: 'boolean' }, bfdTimes.openApi] },
).default(undefined);

export const bgpPeerSchema = object({
  name: textRule(peerName.check, peerName.not).default(''),
  address,
  interface: textRule(
    (text) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/.test(text),
    'is not the name of a network interface',
  ).default(''),
  source: address.default(''),
  localPort: wholeNumber(1, 65_535).default(179),
  asn,
  port: wholeNumber(1, 65_535).default(179),
  families: listOf(oneOf('ipv4', 'ipv6')).default([]),
  passwordFile: textRule((text) => text !== '' && !text.includes('\0'), 'is not the path of a file').default(
    '',
  ),
  multihop: wholeNumber(0, 255).default(0),
  ttlSecurity: boolean().default(false),
  bfd,
  communities: listOf(community).default([]),
  largeCommunities: listOf(largeCommunity).default([]),
  localPreference: wholeNumber(1, 4_294_967_295).nullish(),
  prepends: wholeNumber(0, 5).default(0),
});
export const bgpSchema = object({
  asn,
  routerId: textRule(
    (text) => parseAddress(text)?.address === text && familyOf(text) === 'v4' && text !== '0.0.0.0',
    'is not an IPv4 address',
  ),
  holdTime: seconds.default(9 * SECOND),
  routeLimit: wholeNumber(1, 1_000_000).default(10_000),
  withoutMembers: oneOf('announce', 'withdraw').default('announce'),
  peers: listOf(bgpPeerSchema),
});

type Read = Valid<typeof bgpSchema>;
type ReadPeer = Read['peers'][number];
type PeerSetting = Omit<ReadPeer, 'families'> & { readonly families: readonly ('v4' | 'v6')[] };

/** Durations in milliseconds, paths absolute. */
export type BgpSetting = Omit<Read, 'peers'> & { readonly peers: readonly PeerSetting[] };

/** undefined: no BGP. */
export function bgp(): Kind<BgpSetting | undefined> {
  return { placeholder: 'YAML', allowed: ALLOWED, read, write };
}

function read(raw: unknown, directory: string): Reading<BgpSetting | undefined> {
  const given = typeof raw === 'string' ? fromText(raw) : raw;
  if (given === undefined) return { value: undefined };
  if (!isMapping(given)) return { errors: [`${JSON.stringify(given)} is not ${ALLOWED}`] };
  const peers = Array.isArray(given.peers) ? given.peers.filter(isMapping) : [];
  const unknown = [
    ...unknownKeys(given, [...bgpSchema.keys]),
    ...peers.flatMap((one, at) => unknownKeys(one, [...bgpPeerSchema.keys], `peers[${at}].`)),
    ...peers.flatMap(({ bfd: times }, at) =>
      isMapping(times) ? unknownKeys(times, [...bfdTimes.keys], `peers[${at}].bfd.`) : [],
    ),
  ];
  if (unknown.length > 0) return { errors: unknown };
  const parsed = bgpSchema.judge(given);
  if (!parsed.success) return { errors: [faultsOf(parsed.faults, given)] };
  const value = {
    ...parsed.data,
    peers: parsed.data.peers.map((peer, at) => completed(peer, at, directory)),
  };
  const errors = conflicts(value);
  return errors.length > 0 ? { errors } : { value };
}

function fromText(text: string): unknown {
  if (text.trim() === '') return undefined;
  const { documents, errors } = parseYamlDocuments(text);
  return errors.length > 0 || documents.length !== 1 ? text : documents[0]?.value;
}

/** With a name, the families of its address, and an absolute path. */
function completed(peer: ReadPeer, at: number, directory: string): PeerSetting {
  const own = familyOf(peer.address);
  // A link-local session carries both: no address of this host is needed for either.
  const byDefault = isLinkLocal(peer.address) ? (['v4', 'v6'] as const) : [own];
  const given = new Set(
    peer.families.map((family) => (family === 'ipv4' ? ('v4' as const) : ('v6' as const))),
  );
  return {
    ...peer,
    name: peer.name || `peer-${at + 1}`,
    families: given.size === 0 ? byDefault : [...given].sort(),
    passwordFile: peer.passwordFile === '' ? '' : resolve(directory, peer.passwordFile),
  };
}

/** The faults of values that are valid one by one. */
function conflicts({ asn: own, peers }: BgpSetting): readonly string[] {
  const faults: string[] = [];
  if (peers.length === 0 || peers.length > MAX_PEERS)
    faults.push(`peers: 1 to ${MAX_PEERS} peers are allowed`);
  peers.forEach((peer, at) => {
    const fail = (field: string, fault: string) => faults.push(`peers[${at}].${field}: ${fault}`);
    const { address: theirs, interface: link, source, multihop, families } = peer;
    if (isLinkLocal(theirs) && link === '')
      fail('interface', `missing, must name the interface of the link-local address ${theirs}`);
    if (!isLinkLocal(theirs) && link !== '')
      fail('interface', `"${link}" is only for a link-local address, and ${theirs} is none`);
    if (source !== '' && familyOf(source) !== familyOf(theirs))
      fail('source', `"${source}" is not of the family of address "${theirs}"`);
    if (source === theirs) fail('source', `"${source}" is the address of the peer`);
    if (peer.localPort !== 179 && source === '')
      fail('source', `missing, must be an address of this host that localPort ${peer.localPort} is of`);
    if (multihop > 0 && isLinkLocal(theirs))
      fail('multihop', `${multihop} is not possible with a link-local address`);
    if (multihop > 0 && peer.bfd !== undefined && source === '')
      fail('source', 'missing, must be an address of this host: BFD over several hops needs it');
    if (families.includes('v6') && !theirs.includes(':'))
      fail('families', 'ipv6 needs a session over IPv6: add a peer with an IPv6 address');
    if (families.includes('v4') && theirs.includes(':') && !isLinkLocal(theirs))
      fail(
        'families',
        'ipv4 needs a session over IPv4, or one with a link-local address: add a peer with an IPv4 address',
      );
    if (peer.localPreference !== undefined && peer.asn !== own)
      fail(
        'localPreference',
        `${peer.localPreference} is only for a peer of this host's own ASN, ${own}, not of ${peer.asn}`,
      );
    if (peer.prepends > 0 && peer.asn === own)
      fail('prepends', `${peer.prepends} is only for a peer of another ASN than this host's own, ${own}`);
  });
  const twice = (values: readonly string[]) => values.find((one, at) => values.indexOf(one) < at);
  const name = twice(peers.map((peer) => peer.name));
  if (name !== undefined) faults.push(`peers: the name "${name}" is used twice`);
  const place = twice(peers.map((peer) => `${peer.address}${peer.interface && `%${peer.interface}`}`));
  if (place !== undefined) faults.push(`peers: the address "${place}" is used twice`);
  return faults;
}

function write(value: BgpSetting | undefined): string {
  if (value === undefined) return '';
  const peers = value.peers.map(({ bfd: times, families, ...peer }) => ({
    ...withoutEmpty(peer),
    families: families.map((family) => `ip${family}`),
    ...(times === undefined ? {} : { bfd: { ...times, interval: BFD_INTERVAL.format(times.interval) } }),
  }));
  return JSON.stringify({ ...value, holdTime: HOLD_TIME.format(value.holdTime), peers });
}

/** What is empty is as if it were not there. */
function withoutEmpty(peer: object): object {
  return Object.fromEntries(Object.entries(peer).filter(([, value]) => !EMPTY.includes(String(value))));
}

const EMPTY: readonly string[] = ['', '0', 'false', 'undefined'];

function isLinkLocal(address: string): boolean {
  return address.startsWith('fe80:');
}
