// The kind of the setting `bgp`: a mapping in the settings file, or YAML text in a flag or variable. Pure.

import { resolve } from 'node:path';
import {
  asn,
  bfdTimes,
  familiesOf,
  MAX_PEERS,
  peerFaults,
  peerFields,
  placeOfPeer,
} from '../base/bgp-peer-rules.ts';
import { familyOf, parseAddress } from '../base/ip.ts';
import { peerName } from '../base/name-forms.ts';
import { unknownKeys } from '../base/nearest.ts';
import {
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
  'a mapping with asn, routerId and optional peers, holdTime, routeLimit and withoutMembers; or nothing';
/** Routers send traffic to a dead host for so long if there is no BFD. */
const HOLD_TIME = duration(3 * SECOND, 3 * MINUTE);
const BFD_INTERVAL = duration(10, 10 * SECOND);

const seconds = textReader((text) => {
  const read = HOLD_TIME.parse(text);
  return read !== undefined && read % SECOND === 0 ? read : undefined;
}, `is not ${HOLD_TIME.words}, in whole seconds`);

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
  ...peerFields,
  passwordFile: textRule((text) => text !== '' && !text.includes('\0'), 'is not the path of a file').default(
    '',
  ),
  bfd,
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
  peers: listOf(bgpPeerSchema).default([]),
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
  return {
    ...peer,
    name: peer.name || `peer-${at + 1}`,
    families: familiesOf(peer.address, peer.families),
    passwordFile: peer.passwordFile === '' ? '' : resolve(directory, peer.passwordFile),
  };
}

/** The faults of values that are valid one by one. */
function conflicts({ asn: own, peers }: BgpSetting): readonly string[] {
  const faults: string[] = [];
  if (peers.length > MAX_PEERS) faults.push(`peers: at most ${MAX_PEERS} peers are allowed`);
  peers.forEach((peer, at) => {
    for (const { field, fault } of peerFaults(peer, own)) faults.push(`peers[${at}].${field}: ${fault}`);
  });
  const twice = (values: readonly string[]) => values.find((one, at) => values.indexOf(one) < at);
  const name = twice(peers.map((peer) => peer.name));
  if (name !== undefined) faults.push(`peers: the name "${name}" is used twice`);
  const place = twice(peers.map(placeOfPeer));
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
