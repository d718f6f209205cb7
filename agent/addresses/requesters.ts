// What asks the pools for addresses: Services, Gateways and IngressClasses of this agent. Finds the object of an owner, and
// reads from it what matters for addresses. Pure.

import { parseAddress } from '../base/ip.ts';
import { quote } from '../base/quote.ts';
import type { ClaimedPort } from '../kubernetes/address-claim.ts';
import { GATEWAY_CONTROLLER, INGRESS_CONTROLLER } from '../kubernetes/class-names.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Gateway } from '../kubernetes/gateway/gateway-objects.ts';
import type { Ingress, IngressClass } from '../kubernetes/ingress/ingress-objects.ts';
import type { Service } from '../kubernetes/objects.ts';
import type { OwnerKey, Problem } from '../model/load-balancer.ts';
import { keyOf, NO_NAMESPACE, objectOf } from '../model/names.ts';
import type { AddressNeeds, FamilyAddress } from './request.ts';

export type Requester = Service | Gateway | IngressClass;

type Objects = Pick<Cluster, 'ownerObject' | 'gatewayClass' | 'services' | 'gateways' | 'ingressClasses'>;

/** undefined if there is none, and if its class has another controller. */
export function requesterOf(cluster: Objects, owner: OwnerKey): Requester | undefined {
  const object = cluster.ownerObject(owner);
  switch (object?.kind) {
    case 'Service':
      return object;
    case 'Gateway': {
      const isOurs = cluster.gatewayClass(object.gatewayClassName)?.controllerName === GATEWAY_CONTROLLER;
      return isOurs && !object.deleting ? object : undefined;
    }
    case 'IngressClass':
      return object.controller === INGRESS_CONTROLLER ? object : undefined;
    default:
      return undefined;
  }
}

export function ownerOfRequester({ kind, key }: Pick<Requester, 'kind' | 'key'>): OwnerKey {
  if (kind === 'Service') return key;
  const [namespace = '', name = ''] = kind === 'Gateway' ? key.split('/') : [NO_NAMESPACE, key];
  return keyOf({ kind: kind === 'Gateway' ? 'Gateway' : 'Ingress', namespace, name });
}

/** The owners of all objects that may ask. */
export function* requestingOwners(cluster: Objects): Generator<OwnerKey> {
  for (const all of [cluster.services(), cluster.gateways(), cluster.ingressClasses()])
    for (const object of all) yield ownerOfRequester(object);
}

export function serviceNeeds(service: Service, fromAnnotation: readonly string[]): AddressNeeds {
  const fromSpec = service.loadBalancerIP === undefined ? [] : [service.loadBalancerIP];
  const [texts, field] =
    fromAnnotation.length > 0 ? [fromAnnotation, IPS_ANNOTATION] : [fromSpec, 'spec.loadBalancerIP'];
  const { named, problems } = namedAddresses(texts, field, service.key, service.ipFamilies);
  const ports = service.ports.map(({ protocol, port }) => ({ protocol, port }));
  return { ...service, named, problems, isRefused: problems.length > 0, ports };
}

/** Each entry of `spec.addresses` without a value asks for an address of one more family; the first family is IPv4. */
export function gatewayNeeds(gateway: Gateway): AddressNeeds {
  const key = ownerOfRequester(gateway);
  const ofIps = gateway.addresses.filter(({ type }) => type === 'IPAddress');
  const values = ofIps.flatMap(({ value }) => (value === '' ? [] : [value]));
  const { named, problems } = namedAddresses(values, 'spec.addresses', key, []);
  const surplus = named.filter(({ family }, at) => named.findIndex((each) => each.family === family) < at);
  const isDual = ofIps.length > 1 && values.length < ofIps.length;
  return {
    ...gateway,
    key,
    named,
    ipFamilies: [],
    ipFamilyPolicy: isDual ? 'PreferDualStack' : undefined,
    ports: gateway.listeners.map(({ protocol, port }) => ({
      protocol: protocol === 'UDP' ? 'UDP' : 'TCP',
      port,
    })),
    // The Gateway API refuses a Gateway with an address of a type that the agent does not have.
    isRefused: problems.length > 0 || ofIps.length < gateway.addresses.length,
    problems: [...problems, ...surplus.map(({ address }) => onlyOne(key, address))],
  };
}

/** `ingresses`: those of the class, whose statuses show the addresses that it had. */
export function ingressClassNeeds(
  ofClass: IngressClass,
  fromAnnotation: readonly string[],
  ingresses: readonly Ingress[],
): AddressNeeds {
  const key = ownerOfRequester(ofClass);
  const { named, problems } = namedAddresses(fromAnnotation, IPS_ANNOTATION, key, []);
  return {
    ...ofClass,
    key,
    namespace: NO_NAMESPACE,
    named,
    ipFamilies: [],
    ipFamilyPolicy: undefined,
    ports: INGRESS_PORTS,
    statusIPs: ingresses.find(({ statusIPs }) => statusIPs.length > 0)?.statusIPs ?? [],
    isRefused: problems.length > 0,
    problems,
  };
}

const IPS_ANNOTATION = 'annotation "headgate.io/load-balancer-ips"';
const INGRESS_PORTS: readonly ClaimedPort[] = [
  { protocol: 'TCP', port: 80 },
  { protocol: 'TCP', port: 443 },
];

function namedAddresses(
  texts: readonly string[],
  field: string,
  key: OwnerKey,
  families: Service['ipFamilies'],
): { named: readonly FamilyAddress[]; problems: readonly Problem[] } {
  const named: FamilyAddress[] = [];
  const problems: Problem[] = [];
  const refuse = (text: string, why: string) => {
    const message = `Cannot use ${field}: ${quote(text)} ${why}`;
    problems.push({ object: objectOf(key), reason: 'InvalidAddress', message });
  };
  for (const text of texts) {
    const parsed = parseAddress(text.trim());
    if (parsed === undefined) refuse(text, 'is not an IPv4 or IPv6 address');
    else if (families.length > 0 && !families.includes(parsed.family)) {
      const allowed = families.map((family) => `IP${family}`).join(', ');
      refuse(text, `is not of the Service's spec.ipFamilies (${allowed})`);
    } else named.push(parsed);
  }
  return { named, problems };
}

function onlyOne(key: OwnerKey, address: string): Problem {
  const message = `Cannot use spec.addresses: "${address}" is the second address of its family, only one of each is supported`;
  return { object: objectOf(key), reason: 'InvalidAddress', message };
}
