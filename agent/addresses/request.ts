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
  /** Milliseconds since the epoch: of two requests for the same address, the older Service gets it. */
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
  /** The primary one first. */
  readonly families: readonly Family[];
  /** Addresses of `all` families or none; of `some`; of `one`, the first possible; or `nothing` new. */
  readonly need: 'all' | 'some' | 'one' | 'nothing';
  /** Requested addresses, at most one for each of `families`. */
  readonly given: readonly { readonly address: string; readonly family: Family }[];
  /** The requested pool. */
  readonly pool: string | undefined;
  /** '': whole addresses. */
  readonly sharingKey: string;
  /** Sorted; not empty with a sharing key. */
  readonly ports: readonly ClaimedPort[];
  readonly statusIPs: readonly { readonly address: string; readonly family: Family }[];
  readonly problems: readonly Problem[];
  /** The Service comes from a manifest of this host: no other host has it, so this host decides even under another leader. */
  readonly isLocal: boolean;
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

/** Of a Service of type LoadBalancer that this agent serves. */
export function addressRequest(
  service: Service,
  annotations: AddressAnnotations,
  isLocal = false,
): AddressRequest {
  const { key, namespace, uid, created, labels } = service;
  const { given, problems } = givenAddresses(service, annotations.loadBalancerIps);
  const ports = sortedPorts(service.ports.map(({ protocol, port }) => ({ protocol, port })));
  return {
    key,
    namespace,
    uid,
    created,
    labels,
    ...familiesOf(service, given, problems.length > 0),
    given,
    pool: annotations.addressPool,
    sharingKey: ports.length === 0 ? '' : (annotations.addressSharingKey ?? ''),
    ports,
    statusIPs: service.statusIPs.flatMap((address) => parseAddress(address) ?? []),
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

/** From the annotation, otherwise from spec.loadBalancerIP; of two addresses of one family, the first. */
function givenAddresses(
  service: Service,
  fromAnnotation: readonly string[],
): { given: AddressRequest['given']; problems: readonly Problem[] } {
  const fromSpec = service.loadBalancerIP === undefined ? [] : [service.loadBalancerIP];
  const [texts, field] =
    fromAnnotation.length > 0
      ? [fromAnnotation, 'annotation "headgate.io/load-balancer-ips"']
      : [fromSpec, 'spec.loadBalancerIP'];
  const given = new Map<Family, { address: string; family: Family }>();
  const problems: Problem[] = [];
  const refuse = (text: string, why: string) => {
    const message = `Cannot use ${field}: ${quote(text)} ${why}`;
    problems.push({ object: `Service ${service.key}`, reason: 'InvalidAddress', message });
  };
  for (const text of texts) {
    const parsed = parseAddress(text.trim());
    if (parsed === undefined) refuse(text, 'is not an IPv4 or IPv6 address');
    else if (service.ipFamilies.length > 0 && !service.ipFamilies.includes(parsed.family)) {
      const families = service.ipFamilies.map((family) => `IP${family}`).join(', ');
      refuse(text, `is not of the Service's spec.ipFamilies (${families})`);
    } else if (!given.has(parsed.family)) given.set(parsed.family, parsed);
  }
  return { given: [...given.values()], problems };
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
