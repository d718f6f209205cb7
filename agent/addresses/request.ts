// The request of a Service to the pools, from its object and its annotations. Pure.

import { parseAddress } from '../base/ip.ts';
import { quote } from '../base/quote.ts';
import { type ClaimedPort, sortedPorts } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Service } from '../kubernetes/objects.ts';
import type { Family, Problem } from '../model/load-balancer.ts';

export interface AddressRequest {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly uid: string;
  /**
   * Milliseconds since the epoch: of two requests for the same address, the older Service gets it. Infinity for a Service
   * of a manifest, whose author could write any time.
   */
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
  /** The primary one first. */
  readonly families: readonly Family[];
  /** Addresses of `all` families or none; of `some`; of `one`, the first possible; or `nothing` new. */
  readonly need: 'all' | 'some' | 'one' | 'nothing';
  /** Requested addresses, at most one for each of `families`. */
  readonly given: readonly FamilyAddress[];
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

export interface FamilyAddress {
  readonly address: string;
  readonly family: Family;
}

export interface OwnAddress extends FamilyAddress {
  /** The Service names another address of the family, and keeps this one until it gets the other one. */
  readonly isLeaving: boolean;
}

export interface AddressAnnotations {
  readonly loadBalancerIps: readonly string[];
  readonly addressPool: string | undefined;
  readonly addressSharingKey: string | undefined;
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
 * Of a Service of type LoadBalancer that this agent serves; undefined if it needs nothing of the pools.
 * `isOwn`: the Service has this address, which it names or its status shows, without the pools.
 */
export function addressRequest(
  service: Service,
  annotations: AddressAnnotations,
  isLocal = false,
  isOwn: (address: string) => boolean = () => false,
): AddressRequest | undefined {
  const { key, namespace, uid, labels } = service;
  const { named, problems } = namedAddresses(service, annotations.loadBalancerIps);
  const statusIPs = service.statusIPs.flatMap((address) => parseAddress(address) ?? []);
  const given = firstOfFamilies(named.filter(({ address }) => !isOwn(address)));
  const ownStatus = statusIPs.filter((each) => isOwn(each.address) && isOfFamilies(each, service));
  const own = ownAddresses(named, ownStatus, isOwn);
  const isRefused = problems.length > 0;
  if (named.length > 0 && given.length === 0 && !isRefused) return undefined;
  const { families, need } = familiesOf(service, given, isRefused);
  const ofPools = named.length > 0 ? given : statusIPs.filter(({ address }) => !isOwn(address));
  const lacking =
    own.length === 0 ? families : families.filter((family) => isLacking(family, need, own, ofPools));
  if (lacking.length === 0 && !isRefused) return undefined;
  const ports = sortedPorts(service.ports.map(({ protocol, port }) => ({ protocol, port })));
  return {
    key,
    namespace,
    uid,
    created: isLocal ? Number.POSITIVE_INFINITY : service.created,
    labels,
    families: lacking,
    need,
    given,
    pool: annotations.addressPool,
    sharingKey: ports.length === 0 ? '' : (annotations.addressSharingKey ?? ''),
    ports,
    statusIPs,
    own,
    problems,
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

/** Of a Service's key. */
export function namespaceOf(service: string): string {
  return service.slice(0, Math.max(0, service.indexOf('/')));
}

/** Those that the Service names; if it names none, those that its status shows. */
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

function isOfFamilies({ family }: FamilyAddress, { ipFamilies }: Service): boolean {
  return ipFamilies.length === 0 || ipFamilies.includes(family);
}

/** From the annotation, otherwise from spec.loadBalancerIP. */
function namedAddresses(
  service: Service,
  fromAnnotation: readonly string[],
): { named: readonly FamilyAddress[]; problems: readonly Problem[] } {
  const fromSpec = service.loadBalancerIP === undefined ? [] : [service.loadBalancerIP];
  const [texts, field] =
    fromAnnotation.length > 0
      ? [fromAnnotation, 'annotation "headgate.io/load-balancer-ips"']
      : [fromSpec, 'spec.loadBalancerIP'];
  const named: FamilyAddress[] = [];
  const problems: Problem[] = [];
  const refuse = (text: string, why: string) => {
    const message = `Cannot use ${field}: ${quote(text)} ${why}`;
    problems.push({ object: `Service ${service.key}`, reason: 'InvalidAddress', message });
  };
  for (const text of texts) {
    const parsed = parseAddress(text.trim());
    if (parsed === undefined) refuse(text, 'is not an IPv4 or IPv6 address');
    else if (!isOfFamilies(parsed, service)) {
      const families = service.ipFamilies.map((family) => `IP${family}`).join(', ');
      refuse(text, `is not of the Service's spec.ipFamilies (${families})`);
    } else named.push(parsed);
  }
  return { named, problems };
}

/**
 * The API server fills in spec.ipFamilies; a manifest without it means IPv4, otherwise IPv6.
 * A Service that names only invalid addresses gets no other one; it keeps what it has.
 */
function familiesOf(
  service: Service,
  given: AddressRequest['given'],
  isRefused: boolean,
): Pick<AddressRequest, 'families' | 'need'> {
  const { ipFamilies, ipFamilyPolicy: policy } = service;
  const isDual = policy === 'PreferDualStack' || policy === 'RequireDualStack';
  const need = policy === 'PreferDualStack' ? 'some' : 'all';
  if (isRefused && given.length === 0) return { families: ['v4', 'v6'], need: 'nothing' };
  if (given.length > 0 && !isDual) return { families: given.map(({ family }) => family), need };
  if (ipFamilies.length > 0)
    return { families: isDual ? [...new Set(ipFamilies)] : ipFamilies.slice(0, 1), need };
  return { families: ['v4', 'v6'], need: isDual ? need : 'one' };
}
