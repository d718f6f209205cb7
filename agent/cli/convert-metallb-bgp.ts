// Converts how MetalLB announces by BGP: advertisements become the field `bgp` of pools, peers with their BFD profiles BGPPeers and
// the setting `bgp`. Each field that has no match here is a note. Pure. https://metallb.io/apis/

import { community, largeCommunity } from '../base/communities.ts';
import { peerName } from '../base/name-forms.ts';
import { isMapping, shownValue } from '../base/validate.ts';
import { matches, selectorSchema } from '../kubernetes/label-selector.ts';
import { ADDRESS_API_VERSION } from '../kubernetes/object-names.ts';
import { parseObject } from '../kubernetes/parse-object.ts';

type Json = Readonly<Record<string, unknown>>;
type NoteOf = (kind: string, name: string) => (text: string) => void;

export interface MetallbObject {
  readonly kind: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, unknown>>;
  readonly spec: Json;
}

/** By kind; the notes of an object begin with its kind and name. */
export class MetallbBgp {
  readonly #of: (kind: string) => readonly MetallbObject[];
  readonly #noteOf: NoteOf;
  /** Name of a Community's entry → its value. */
  readonly #communities = new Map<string, string>();

  constructor(objects: readonly MetallbObject[], noteOf: NoteOf) {
    this.#of = (kind) => objects.filter((each) => each.kind === kind);
    this.#noteOf = noteOf;
    for (const { spec } of this.#of('Community'))
      for (const { name, value } of listOf(spec.communities).filter(isMapping))
        this.#communities.set(String(name), String(value));
  }

  /** What an AddressPool says besides its addresses. */
  poolFields(pool: MetallbObject): Json {
    const [first, ...others] = this.#of('BGPAdvertisement').filter(({ spec }) => selects(spec, pool));
    for (const { name } of others)
      this.#noteOf(
        'BGPAdvertisement',
        name,
      )(
        `is left out for the pool "${pool.name}", which has the one of "${first?.name}": a pool is announced in one way`,
      );
    if (first === undefined) return {};
    const bgp = this.#advertised(first);
    return Object.keys(bgp).length === 0 ? {} : { bgp };
  }

  #advertised({ name, spec }: MetallbObject): Json {
    const note = this.#noteOf('BGPAdvertisement', name);
    const { aggregationLength = 32, aggregationLengthV6 = 128, localPref, peers, nodeSelectors } = spec;
    if (aggregationLength !== 32 || aggregationLengthV6 !== 128)
      note('spec.aggregationLength: the routes of single addresses are announced besides their network');
    for (const field of Object.keys(spec))
      if (!ADVERTISEMENT.includes(field) && isGiven(spec[field]))
        note(`spec.${field}: ${shownValue(spec[field])} has no match`);
    const [selector, ...more] = listOf(nodeSelectors);
    if (more.length > 0)
      note(
        `spec.nodeSelectors: a pool has one selector of hosts, not ${more.length + 1}: the first is written`,
      );
    const named = listOf(peers)
      .map(String)
      .filter((peer) => isPeerName(peer, note));
    const values = listOf(spec.communities).map((each, at) => this.#community(String(each), at, note));
    const plain = values.filter((each) => community.judge(each).success);
    const large = values.filter((each) => largeCommunity.judge(stripped(each)).success).map(stripped);
    return {
      ...(named.length > 0 && { peers: named }),
      ...(plain.length > 0 && { communities: plain }),
      ...(large.length > 0 && { largeCommunities: large }),
      ...(typeof localPref === 'number' && localPref > 0 && { localPreference: localPref }),
      ...(aggregationLength !== 32 && { aggregateLength: aggregationLength }),
      ...(aggregationLengthV6 !== 128 && { aggregateLengthV6: aggregationLengthV6 }),
      ...(isMapping(selector) && { announceFrom: { hostSelector: selector } }),
    };
  }

  /** The value of a name, or the text itself; '' after a note. */
  #community(text: string, at: number, note: (text: string) => void): string {
    const value = this.#communities.get(text) ?? text;
    if (community.judge(value).success || largeCommunity.judge(stripped(value)).success) return value;
    note(`spec.communities[${at}]: ${shownValue(value)} is no community, nor the name of one in a Community`);
    return '';
  }

  /** The lines of the setting `bgp` for each host; none without peers. */
  settings(): readonly string[] {
    for (const { name, spec } of this.#of('BGPAdvertisement'))
      if (!this.#of('IPAddressPool').some((pool) => selects(spec, pool)))
        this.#noteOf('BGPAdvertisement', name)('is left out: it selects no IPAddressPool that is here');
    const all = this.#usable();
    const [first] = all;
    if (first === undefined) return [];
    const { myASN, routerID, holdTime } = first.spec;
    for (const { name, spec } of all)
      for (const [field, value] of Object.entries({ myASN, routerID, holdTime }))
        if (spec[field] !== value)
          this.#noteOf(
            'BGPPeer',
            name,
          )(
            `spec.${field}: ${shownValue(spec[field])} is another than of "${first.name}", and a host has one for all peers`,
          );
    return [
      'announce: bgp',
      'bgp:',
      `  asn: ${JSON.stringify(myASN)}`,
      `  routerId: ${routerID ? JSON.stringify(routerID) : 'AN-IPV4-ADDRESS-OF-THE-HOST'}`,
      ...(holdTime === undefined ? [] : [`  holdTime: ${seconds(holdTime)}`]),
    ];
  }

  /** The BGPPeers: name and `spec` of each. */
  peers(): readonly { readonly name: string; readonly spec: Json }[] {
    return this.#usable().map((peer) => ({ name: peer.name, spec: this.#peer(peer) }));
  }

  #usable(): readonly MetallbObject[] {
    return this.#of('BGPPeer').filter((peer) => this.#isUsable(peer));
  }

  #isUsable(peer: MetallbObject): boolean {
    const note = this.#noteOf('BGPPeer', peer.name);
    if (!isPeerName(peer.name, note)) return false;
    const metadata = { name: peer.name };
    const object = { apiVersion: ADDRESS_API_VERSION, kind: 'BGPPeer', metadata, spec: this.#peer(peer) };
    const [problem] = parseObject(object, '').problems;
    if (problem !== undefined) note(`is left out: ${problem.message}`);
    return problem === undefined;
  }

  #peer({ name, spec }: MetallbObject): Json {
    const note = this.#noteOf('BGPPeer', name);
    const { peerAddress, peerASN, peerPort, sourceAddress, ebgpMultiHop, bfdProfile } = spec;
    const { password, disableMP, dualStackAddressFamily, nodeSelectors } = spec;
    for (const field of Object.keys(spec))
      if (!PEER.includes(field) && isGiven(spec[field]))
        note(`spec.${field}: ${shownValue(spec[field])} has no match`);
    const secret = isMapping(spec.passwordSecret) && spec.passwordSecret.name ? spec.passwordSecret.name : '';
    if (secret !== '') note('spec.passwordSecret: copy the Secret into the namespace of the agents');
    else if (isGiven(password)) note(`its password: write it into the key "password" of a Secret ${name}`);
    const hasNoSource = ebgpMultiHop === true && bfdProfile && !sourceAddress;
    if (hasNoSource)
      note(
        'spec.bfdProfile: is left out: BFD over several hops needs "source", an address of the host, and a BGPPeer for each',
      );
    if (isGiven(disableMP) || isGiven(dualStackAddressFamily))
      note('its address families: a peer has those of its address, unless "families" names others');
    const [selector, ...more] = listOf(nodeSelectors);
    if (more.length > 0)
      note(
        `spec.nodeSelectors: a BGPPeer has one selector of hosts, not ${more.length + 1}: the first is written`,
      );
    return {
      address: peerAddress,
      ...(spec.interface ? { interface: spec.interface } : {}),
      asn: peerASN,
      ...(peerPort === undefined || peerPort === 0 || peerPort === 179 ? {} : { port: peerPort }),
      ...(sourceAddress ? { source: sourceAddress } : {}),
      ...(secret !== '' || isGiven(password) ? { passwordSecret: { name: secret || name } } : {}),
      ...(ebgpMultiHop === true ? { multihop: 255 } : {}),
      ...(bfdProfile && !hasNoSource ? { bfd: this.#bfd(String(bfdProfile), note) } : {}),
      ...(isMapping(selector) && { hostSelector: selector }),
    };
  }

  #bfd(name: string, note: (text: string) => void): unknown {
    const profile = this.#of('BFDProfile').find((each) => each.name === name);
    if (profile === undefined) {
      note(`spec.bfdProfile: there is no BFDProfile "${name}" here: the times by default are written`);
      return {};
    }
    const { receiveInterval = 300, transmitInterval = 300, detectMultiplier = 3, ...rest } = profile.spec;
    const own = this.#noteOf('BFDProfile', name);
    for (const [field, value] of Object.entries(rest).filter(([, each]) => isGiven(each)))
      own(`spec.${field}: ${shownValue(value)} has no match`);
    if (receiveInterval !== transmitInterval)
      own(`spec.receiveInterval: BFD has one interval for both directions: the longer one is written`);
    const interval = Math.max(Number(receiveInterval), Number(transmitInterval));
    return { interval: `${interval}ms`, multiplier: detectMultiplier };
  }
}

const ADVERTISEMENT = [
  'aggregationLength',
  'aggregationLengthV6',
  'localPref',
  'communities',
  'ipAddressPools',
  'ipAddressPoolSelectors',
  'nodeSelectors',
  'peers',
];
const PEER = [
  ...['myASN', 'peerASN', 'peerAddress', 'peerPort', 'sourceAddress', 'interface', 'holdTime', 'routerID'],
  ...['password', 'passwordSecret', 'bfdProfile', 'ebgpMultiHop', 'disableMP', 'dualStackAddressFamily'],
  'nodeSelectors',
];

/** Without names and selectors an advertisement is of all pools. */
function selects({ ipAddressPools, ipAddressPoolSelectors }: Json, { name, labels }: MetallbObject): boolean {
  const [names, selectors] = [listOf(ipAddressPools), listOf(ipAddressPoolSelectors)];
  if (names.length === 0 && selectors.length === 0) return true;
  const texts = Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, String(value)]));
  return (
    names.includes(name) ||
    selectors.some((each) => {
      const selector = selectorSchema.judge(each);
      return selector.success && matches(selector.data, texts);
    })
  );
}

function isPeerName(name: string, note: (text: string) => void): boolean {
  if (peerName.check(name)) return true;
  note(`the peer ${shownValue(name)} is left out: its name ${peerName.not}`);
  return false;
}

/** `kubectl get` shows what is off or empty, too. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== '' && value !== 0;
}

function stripped(text: string): string {
  return text.replace(/^large:/, '');
}

/** `1m30s` of Go as seconds. */
function seconds(value: unknown): string {
  const [, minutes = '0', rest = '0'] = /^(?:(\d+)m)?(?:(\d+)s)?$/.exec(String(value)) ?? [];
  return `${Number(minutes) * 60 + Number(rest)}s`;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
