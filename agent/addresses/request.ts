// The request of an owner to the pools: of a Service from its object and its annotations. Pure.

import { parseAddress } from '../base/ip.ts';
import { quote } from '../base/quote.ts';
import { type ClaimedPort, sortedPorts } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Service } from '../kubernetes/objects.ts';
import type { Family, OwnerKey, Problem } from '../model/load-balancer.ts';
import { objectOf, ownerOf } from '../model/names.ts';

export interface AddressRequest {
  readonly key: OwnerKey;
  /** `-` of an IngressClass. */
  readonly namespace: string;
  readonly uid: string;
  /**
   * Milliseconds since the epoch: of two requests for the same address, the older Service gets it. Infinity for a Service
   * of a manifest, whose author could write any time.
   */
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
  /** undefined if they are not known. */
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined;
  /** The primary one first. */
  readonly families: readonly Family[];
  /** Addresses of `all` families or none; of `some`; of `one`, the first possible; or `nothing` new. */
  readonly need: 'all' | 'some' | 'one' | 'nothing';
  /** Requested addresses, at most one for each of `families`. */
  readonly given: readonly FamilyAddress[];
  /** The public addresses that the owner names, at most one for each family. */
  readonly publicAddresses: readonly FamilyAddress[];
  /** The requested pool. */
  readonly pool: string | undefined;
  /** '': whole addresses. */
  readonly sharingKey: string;
  /** Sorted; not empty with a sharing key. */
  readonly ports: readonly ClaimedPort[];
  readonly statusIPs: readonly FamilyAddress[];
  /** Addresses outside the pools that the Service has without a claim. */
  readonly own: readonly OwnAddress[];
  readonly problems: readonly Problem[];
  /** The Service comes from a manifest of this host: no other host has it, so this host decides even under another leader. */
  readonly isLocal: boolean;
}

/** What an object says about the addresses that it needs. */
export interface AddressNeeds
  extends Pick<
    Service,
    'namespace' | 'uid' | 'created' | 'labels' | 'ipFamilies' | 'ipFamilyPolicy' | 'statusIPs'
  > {
  readonly key: OwnerKey;
  /** The addresses that the object names, valid and of its families. */
  readonly named: readonly FamilyAddress[];
  readonly ports: readonly ClaimedPort[];
  /** It may have what it has, but nothing new. */
  readonly isRefused: boolean;
  readonly problems: readonly Problem[];
}

export interface FamilyAddress {
  readonly address: string;
  readonly family: Family;
}

export interface OwnAddress extends FamilyAddress {
  /** The Service names another address of the family, and keeps this one until it gets the other one. */
  readonly isLeaving: boolean;
}

export interface AddressAnnotations {
  readonly addressPool: string | undefined;
  readonly addressSharingKey: string | undefined;
  readonly publicAddress: readonly string[];
}

/** What a request means for one address. */
export interface Wish {
  readonly service: string;
  readonly namespace: string;
  readonly sharingKey: string;
  /** Empty: the whole address. */
  readonly ports: readonly ClaimedPort[];
  /** The pool lets Services of several namespaces share. */
  readonly acrossNamespaces: boolean;
}

/**
 * The request of an owner that this agent serves; undefined if it needs nothing of the pools.
 * `isOwn`: the owner has this address, which it names or its status shows, without the pools.
 */
export function addressRequest(
  needs: AddressNeeds,
  annotations: AddressAnnotations,
  isLocal = false,
  isOwn: (address: string) => boolean = () => false,
  namespaceLabels?: AddressRequest['namespaceLabels'],
): AddressRequest | undefined {
  const { key, namespace, uid, labels, named, isRefused, problems } = needs;
  const statusIPs = needs.statusIPs.flatMap((address) => parseAddress(address) ?? []);
  const given = firstOfFamilies(named.filter(({ address }) => !isOwn(address)));
  const ownStatus = statusIPs.filter((each) => isOwn(each.address) && isOfFamilies(each, needs));
  const own = ownAddresses(named, ownStatus, isOwn);
  if (named.length > 0 && given.length === 0 && !isRefused) return undefined;
  const { families, need } = familiesOf(needs, given, isRefused);
  const ofPools = named.length > 0 ? given : statusIPs.filter(({ address }) => !isOwn(address));
  const lacking =
    own.length === 0 ? families : families.filter((family) => isLacking(family, need, own, ofPools));
  if (lacking.length === 0 && !isRefused) return undefined;
  const ports = sortedPorts(needs.ports);
  return {
    key,
    namespace,
    uid,
    created: isLocal ? Number.POSITIVE_INFINITY : needs.created,
    labels,
    namespaceLabels,
    families: lacking,
    need,
    given,
    publicAddresses: annotations.publicAddress.flatMap((text) => parseAddress(text) ?? []),
    pool: annotations.addressPool,
    sharingKey: ports.length === 0 ? '' : (annotations.addressSharingKey ?? ''),
    ports,
    statusIPs,
    own,
    problems: [...problems, ...annotations.publicAddress.flatMap((text) => notAnAddress(key, text))],
    isLocal,
  };
}

export function wishOf(request: AddressRequest, pool: AddressPool | undefined): Wish {
  const { key, namespace, sharingKey, ports } = request;
  return {
    service: key,
    namespace,
    sharingKey,
    ports: sharingKey === '' ? [] : ports,
    acrossNamespaces: pool?.shareAcrossNamespaces ?? false,
  };
}

function notAnAddress(key: OwnerKey, text: string): Problem | [] {
  if (parseAddress(text) !== undefined) return [];
  const message = `Cannot use annotation "headgate.io/public-address": ${quote(text)} is not an IPv4 or IPv6 address`;
  return { object: objectOf(key), reason: 'InvalidAddress', message };
}

/** The namespace of the owner in a claim; '' for none. */
export function namespaceOf(owner: OwnerKey): string {
  return owner === '' ? '' : ownerOf(owner).namespace;
}

/** The addresses that the Service names; if it names none, those that its status shows. */
function ownAddresses(
  named: readonly FamilyAddress[],
  ownStatus: readonly FamilyAddress[],
  isOwn: (address: string) => boolean,
): readonly OwnAddress[] {
  if (named.length === 0) return ownStatus.map((each) => ({ ...each, isLeaving: false }));
  const own = named.filter(({ address }) => isOwn(address));
  const leaving = ownStatus.filter(({ family }) => hasFamily(named, family) && !hasFamily(own, family));
  return [
    ...own.map((each) => ({ ...each, isLeaving: false })),
    ...leaving.map((each) => ({ ...each, isLeaving: true })),
  ];
}

/** The Service needs an address of the family besides its own ones. `ofPools`: those that it names or has of pools. */
function isLacking(
  family: Family,
  need: AddressRequest['need'],
  own: readonly OwnAddress[],
  ofPools: readonly FamilyAddress[],
): boolean {
  if (hasFamily(ofPools, family)) return true;
  return need !== 'one' && !own.some((each) => each.family === family && !each.isLeaving);
}

function hasFamily(addresses: readonly FamilyAddress[], family: Family): boolean {
  return addresses.some((each) => each.family === family);
}

function firstOfFamilies(addresses: readonly FamilyAddress[]): readonly FamilyAddress[] {
  return addresses.filter(({ family }, at) => addresses.findIndex((each) => each.family === family) === at);
}

function isOfFamilies({ family }: FamilyAddress, { ipFamilies }: AddressNeeds): boolean {
  return ipFamilies.length === 0 || ipFamilies.includes(family);
}

/**
 * The API server fills in spec.ipFamilies; a manifest without it means IPv4, otherwise IPv6.
 * A Service that names only invalid addresses gets no other one; it keeps what it has.
 */
function familiesOf(
  needs: AddressNeeds,
  given: AddressRequest['given'],
  isRefused: boolean,
): Pick<AddressRequest, 'families' | 'need'> {
  const { ipFamilies, ipFamilyPolicy: policy } = needs;
  const isDual = policy === 'PreferDualStack' || policy === 'RequireDualStack';
  const need = policy === 'PreferDualStack' ? 'some' : 'all';
  if (isRefused && given.length === 0) return { families: ['v4', 'v6'], need: 'nothing' };
  if (given.length > 0 && !isDual) return { families: given.map(({ family }) => family), need };
  if (ipFamilies.length > 0)
    return { families: isDual ? [...new Set(ipFamilies)] : ipFamilies.slice(0, 1), need };
  return { families: ['v4', 'v6'], need: isDual ? need : 'one' };
}
