// What a Service asks of the pools, read from its object and its annotations. Pure.

import { parseAddress } from '../base/ip.ts';
import { quote } from '../base/quote.ts';
import { type ClaimedPort, sortedPorts } from '../kubernetes/address-claim.ts';
import type { Service } from '../kubernetes/objects.ts';
import type { Family, Problem } from '../model/load-balancer.ts';

export interface AddressRequest {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly uid: string;
  /** Milliseconds since the epoch: of two that want the same, the older one gets it. */
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
  /** The primary one first. */
  readonly families: readonly Family[];
  /** All of them or nothing new; as many as can be had; exactly one, the first that can be had; what it has already. */
  readonly need: 'all' | 'some' | 'one' | 'nothing';
  /** Addresses it asks for, at most one per family, each of one of `families`. */
  readonly given: readonly { readonly address: string; readonly family: Family }[];
  /** The pool it asks for. */
  readonly pool: string | undefined;
  /** '': whole addresses. */
  readonly sharingKey: string;
  /** Sorted; not empty where there is a sharing key. */
  readonly ports: readonly ClaimedPort[];
  /** What its status shows. */
  readonly statusIPs: readonly { readonly address: string; readonly family: Family }[];
  /** What of the request cannot be. */
  readonly problems: readonly Problem[];
  /** The Service is one of a manifest of this host: no other one knows it, so this one decides, whoever leads. */
  readonly isLocal: boolean;
}

/** Values of the annotations of these names. */
export interface AddressAnnotations {
  readonly loadBalancerIps: readonly string[];
  readonly addressPool: string | undefined;
  readonly addressSharingKey: string | undefined;
}

/** Of a Service that is ours and of type LoadBalancer. */
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

/** The annotation's, else spec.loadBalancerIP; of two of one family, the first. */
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
 * spec.ipFamilies says it all where the API server has filled it in; a manifest without it means IPv4 or else IPv6.
 * A Service that asks for nothing but addresses that cannot be gets none, not just any; it keeps what it has.
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
