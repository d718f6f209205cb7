// Why a session with a router is not established, in words, with the remedy. Pure.

import type { BgpPeer } from '../bgp.ts';
import { placeOfPassword } from './passwords.ts';
import type { ProtocolFacts } from './session-facts.ts';
import type { SignatureFaults } from './signature-faults.ts';

type Facts = Pick<ProtocolFacts, 'state' | 'lastError'>;
/** What was wrong with the MD5 signature of segments that the kernel has dropped just now; '' for nothing. */
type Signature = keyof SignatureFaults | '';

export interface SessionSigns {
  readonly signature: Signature;
  /** It should have been established by now. */
  readonly isLate: boolean;
  /** BFD with the router is up. */
  readonly hasBfd: boolean;
}

export function whyNotEstablished(
  peer: BgpPeer,
  facts: Facts | undefined,
  asn: number,
  { signature, isLate, hasBfd }: SessionSigns,
): string {
  if (facts === undefined) return 'BIRD does not have this session yet';
  const { state, lastError } = facts;
  if (state === 'Established') return '';
  const password = passwordFault(peer, signature);
  if (password !== '') return password;
  // A router that has another password now is silent after the reset.
  if (isLate && RESET.test(lastError)) return `its operator has reset the session, and now ${silence(peer)}`;
  if (isLate && hasBfd && BFD_DOWN.test(lastError)) return `BFD is up, but ${silence(peer)}`;
  // BIRD does not even try.
  if (isLate && state === 'Idle' && lastError === '') return unconnected(peer);
  for (const [pattern, words] of REFUSALS) if (pattern.test(lastError)) return words(peer, asn);
  if (lastError !== '') return `${lastError[0]?.toLowerCase()}${lastError.slice(1)}`;
  return silence(peer);
}

/** The router or this host has refused the session because of a setting: it will not be established a moment later. */
export function isRefused(peer: BgpPeer, facts: Facts | undefined, signature: Signature): boolean {
  if (facts === undefined || facts.state === 'Established') return false;
  return passwordFault(peer, signature) !== '' || LASTING.test(facts.lastError);
}

function passwordFault(peer: BgpPeer, signature: Signature): string {
  const password = placeOfPassword(peer);
  if (password !== '' && signature === 'wrong')
    return `it has another password: compare ${password} with the password of the router`;
  if (password !== '' && signature === 'missing')
    return `it has no password for this host: set it there, or leave "${fieldOf(peer)}" out`;
  if (password === '' && signature === 'unexpected')
    return `it has a password for this host: set "${fieldOf(peer)}"`;
  return '';
}

function silence(peer: BgpPeer): string {
  const ttl = peer.ttlSecurity ? ' it has no TTL security for this host,' : '';
  const password = placeOfPassword(peer) === '' ? 'it asks for a password' : 'its password is another';
  return `it does not answer: it does not run, a filter is in between, it does not have this host as its neighbour,${ttl} or ${password}`;
}

function unconnected(peer: BgpPeer): string {
  if (peer.interface !== '')
    return `the interface ${peer.interface} of this host is missing, is down, or has no link-local address`;
  return peer.multihop === 0 ? NOT_CONNECTED : silence(peer);
}

function fieldOf({ object }: BgpPeer): string {
  return object === undefined ? 'passwordFile' : 'passwordSecret';
}

function ofPeer({ object }: BgpPeer): string {
  return object === undefined ? 'this peer of the setting bgp' : 'this BGPPeer';
}

/** The router has ended the session because of its limit of routes. */
export function isFull(facts: Pick<ProtocolFacts, 'lastError'> | undefined): boolean {
  return FULL.test(facts?.lastError ?? '');
}

export const FULL_WORDS =
  'it takes fewer routes than this host announces: raise the limit of prefixes on the router';

const FULL = /Maximum number of prefixes reached/;
const NOT_CONNECTED = 'no network of this host has its address: set "multihop" if it is further away';

const BFD_DOWN = /BFD session down/;
const RESET = /^Received: Administrative reset/;
/** Only another setting, here or at the router, ends it. */
const LASTING = /Bad peer AS|Bad BGP identifier|Unacceptable hold time|Maximum number of prefixes reached/;

type Words = (peer: BgpPeer, asn: number) => string;

/** What BIRD reports → the words. */
const REFUSALS: readonly (readonly [RegExp, Words])[] = [
  [
    /^Received: Bad peer AS/,
    (_, asn) =>
      `it expects another ASN of this host than ${asn}: correct "asn" of the setting bgp, or the router`,
  ],
  [/Error: Bad peer AS/, (peer) => `its ASN is another than ${peer.asn}: correct "asn" of ${ofPeer(peer)}`],
  [/Bad BGP identifier/, () => 'both have the same router ID: correct "routerId" of the setting bgp'],
  [FULL, () => FULL_WORDS],
  [
    /^Received: Administrative shutdown/,
    () => 'its operator has shut the session down, or it is being stopped',
  ],
  [RESET, () => 'its operator has reset the session'],
  [/^Received: Peer de-configured/, () => 'it does not have this host as its neighbour any more'],
  [
    /^Received: Connection rejected/,
    () => 'it rejects the connection: it does not have this host as its neighbour',
  ],
  [/^Received: Unacceptable hold time/, () => 'it does not accept "holdTime" of the setting bgp'],
  [BFD_DOWN, () => 'BFD is down: the router does not answer, or has no BFD for this host'],
  [
    /Connection refused/,
    ({ port }) => `it refuses connections to port ${port}: no BGP runs there, or it does not take this host`,
  ],
  [/No route to host|Network is unreachable/, () => 'this host has no way to it'],
  [/Hold timer expired/, () => 'it was silent for the hold time'],
  [/Neighbor lost|Invalid next hop|no longer|not directly connected/i, () => NOT_CONNECTED],
];
