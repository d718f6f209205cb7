// Decides which Services this agent serves, and which addresses they have. Pure.
// Sources: KEP-1959 (loadBalancerClass), the cloud provider's service controller, the Kubernetes API reference.

import { parseAddress } from '../../base/ip.ts';
import { quote } from '../../base/quote.ts';
import type { Service } from '../../kubernetes/objects.ts';
import { type PortLimit, whyNotGranted } from '../../kubernetes/port-limit.ts';
import type { Problem, Protocol, Vip } from '../../model/load-balancer.ts';
import type { OwnershipSettings } from '../translate-settings.ts';

/** The addresses that a Service has from pools, and the problems with those that it lacks. */
export interface PoolAddresses {
  readonly addresses: readonly {
    readonly address: string;
    /** The address that clients use, if a NAT translates it. */
    readonly publicAddress?: string;
    /** The ports that the Service has of a shared address; empty: all. */
    readonly ports: readonly { readonly protocol: Protocol; readonly port: number }[];
    /** undefined if nothing limits its ports. */
    readonly limit?: PortLimit | undefined;
  }[];
  readonly problems: readonly Problem[];
}

/** undefined for a Service without addresses from pools: it has the addresses that it names itself. */
export type AddressesView = (key: string) => PoolAddresses | undefined;

export const RELEASED =
  'An operator has released it by "headgate release", which "headgate release --undo" ends';

const SKIP_LABELS = ['service.kubernetes.io/service-proxy-name', 'service.kubernetes.io/headless'];

/**
 * Why this agent does not serve the Service, as a sentence for `why`; undefined if it does. `isOfPools`: it has addresses
 * of the pools, or gets them.
 */
export function reasonToIgnore(
  service: Service,
  settings: OwnershipSettings,
  isOfPools: boolean,
): string | undefined {
  if (settings.isReleased?.(service.namespace) === true) return RELEASED;
  if (service.deleting) return 'It is being deleted';
  if (service.type === 'ExternalName')
    return 'It is of type ExternalName: it has no members to send traffic to';
  if (service.headless) return 'It is headless (spec.clusterIP: None): clients reach its pods directly';
  for (const label of SKIP_LABELS) {
    if (label in service.labels) return `It has the label "${label}": another proxy serves it`;
  }
  if (settings.clusterIPs && service.clusterIPs.length > 0) return undefined;
  if (settings.externalIPs && service.externalIPs.length > 0) return undefined;
  return reasonNotLoadBalancer(service, settings, isOfPools);
}

/** True if the agent gives the Service its addresses, false if it serves only external IPs and cluster IPs. */
export function getsAddresses(service: Service, settings: OwnershipSettings, isOfPools: boolean): boolean {
  return (
    reasonToIgnore(service, settings, isOfPools) === undefined &&
    reasonNotLoadBalancer(service, settings, isOfPools) === undefined
  );
}

/**
 * Another controller has given the Service its addresses, and nothing asks for this agent: to serve it would take it away
 * from that controller.
 */
export function isOfAnotherController(
  service: Pick<Service, 'hasForeignStatus' | 'loadBalancerClass' | 'annotations'>,
): boolean {
  return (
    service.hasForeignStatus &&
    service.loadBalancerClass === undefined &&
    !Object.keys(service.annotations).some((name) => name.startsWith('headgate.io/'))
  );
}

/** Why the Service is not a load balancer of this agent's class; undefined if it is. */
function reasonNotLoadBalancer(
  service: Service,
  settings: OwnershipSettings,
  isOfPools: boolean,
): string | undefined {
  if (service.type !== 'LoadBalancer') return `It is of type ${service.type}, not LoadBalancer`;
  const { loadBalancerClass } = service;
  if (loadBalancerClass === settings.loadBalancerClass) return undefined;
  if (loadBalancerClass !== undefined) {
    return `Its spec.loadBalancerClass is "${loadBalancerClass}", not "${settings.loadBalancerClass}"`;
  }
  if (settings.handleUnclassed && !isOfPools && isOfAnotherController(service)) {
    const shown = service.statusIPs.length === 0 ? 'a name' : service.statusIPs.join(', ');
    return `Another controller has given it an address: its status shows ${shown}, which no AddressPool has; to have it served here, give an AddressPool its address, or set annotation "headgate.io/load-balancer-ips"`;
  }
  if (settings.handleUnclassed) return undefined;
  return `It has no spec.loadBalancerClass, and the setting handleUnclassed is off; this agent's class is "${settings.loadBalancerClass}"`;
}

/**
 * The addresses of a Service that this agent serves, without duplicates: those from pools; without pools those of the
 * annotation, else spec.loadBalancerIP, else those of its status; if the settings allow them, also external IPs and
 * cluster IPs.
 */
export function serviceVips(
  service: Service,
  fromAnnotation: readonly string[],
  settings: OwnershipSettings,
  ofPools?: PoolAddresses,
): { readonly vips: readonly Vip[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [...(ofPools?.problems ?? [])];
  const vips = new Map<string, Vip>();
  const add = (texts: readonly string[], source: Vip['source'], field: string): void => {
    for (const text of texts) {
      const vip = parseVip(text, source);
      if (typeof vip === 'string') problems.push(refusal(service, field, text, vip));
      else if (!isOfFamilies(vip, service))
        problems.push(refusal(service, field, text, notOfFamilies(service)));
      else if (!vips.has(vip.address)) vips.set(vip.address, vip);
    }
  };
  if (reasonNotLoadBalancer(service, settings, ofPools !== undefined) === undefined) {
    const pooled = ofPools?.addresses.map(({ address }) => address);
    if (pooled !== undefined) add(pooled, 'pool', 'its AddressClaim');
    else if (fromAnnotation.length > 0)
      add(fromAnnotation, 'annotation', 'annotation "headgate.io/load-balancer-ips"');
    else if (service.loadBalancerIP)
      add([service.loadBalancerIP], 'spec.loadBalancerIP', 'spec.loadBalancerIP');
    else add(service.statusIPs, 'status', 'status.loadBalancer.ingress');
    if (pooled === undefined && vips.size > 0) problems.push(...missingFamilies(service, [...vips.values()]));
  }
  if (settings.externalIPs) add(service.externalIPs, 'spec.externalIPs', 'spec.externalIPs');
  if (settings.clusterIPs) add(service.clusterIPs, 'spec.clusterIPs', 'spec.clusterIPs');
  return { vips: withPublic([...vips.values()], ofPools), problems };
}

/** Adds the address that clients use, where it is another one. */
export function withPublic(vips: readonly Vip[], ofPools: PoolAddresses | undefined): readonly Vip[] {
  return vips.map((vip) => {
    const found = ofPools?.addresses.find(({ address }) => address === vip.address)?.publicAddress;
    return found === undefined || found === vip.address ? vip : { ...vip, publicAddress: found };
  });
}

/** Pools answer for themselves. */
export function unusedPublicAddress(
  key: string,
  asked: readonly string[],
  vips: readonly Vip[],
): readonly Problem[] {
  if (asked.length === 0 || vips.length === 0 || vips.some(({ source }) => source === 'pool')) return [];
  const message = `Cannot use annotation "headgate.io/public-address": the Service has no address of a pool, which would allow it (public.allowed)`;
  return [{ object: `Service ${key}`, reason: 'InvalidAnnotation', message }];
}

/** True if the Service has this port of the address; it has only some ports of a shared address. */
export function hasPort(
  ofPools: PoolAddresses | undefined,
  address: string,
  { protocol, port }: { readonly protocol: Protocol; readonly port: number },
): boolean {
  const found = ofPools?.addresses.find((each) => each.address === address);
  if (whyNotGranted(found?.limit, { protocol, port }) !== undefined) return false;
  const ports = found?.ports ?? [];
  return ports.length === 0 || ports.some((each) => each.protocol === protocol && each.port === port);
}

/** As the end of a sentence why the text is no VIP. */
export function parseVip(text: string, source: Vip['source']): Vip | string {
  const parsed = parseAddress(text.trim());
  if (parsed === undefined) return 'is not an IPv4 or IPv6 address';
  const { address, family } = parsed;
  if (address === '0.0.0.0' || address === '::')
    return 'is the unspecified address, which stands for every address of the host';
  if (isMulticast(address)) return 'is a multicast address';
  if (/^fe[89ab]/.test(address)) return 'is a link-local address, which has no meaning without an interface';
  return { address, family, source };
}

function isMulticast(address: string): boolean {
  if (address.includes(':')) return address.startsWith('ff');
  return Number(address.slice(0, address.indexOf('.'))) >= 224;
}

function isOfFamilies(vip: Vip, service: Service): boolean {
  return service.ipFamilies.length === 0 || service.ipFamilies.includes(vip.family);
}

/** A Service that requires both families and has only one is served with that one. */
function missingFamilies(service: Service, vips: readonly Vip[]): readonly Problem[] {
  if (service.ipFamilyPolicy !== 'RequireDualStack') return [];
  const required = service.ipFamilies.length > 0 ? service.ipFamilies : (['v4', 'v6'] as const);
  return required
    .filter((family) => !vips.some((vip) => vip.family === family))
    .map((family) => ({
      object: `Service ${service.key}`,
      reason: 'AddressPending',
      message: `Waiting for an IP${family} address, which its spec.ipFamilyPolicy (RequireDualStack) requires: name one address of each family in annotation "headgate.io/load-balancer-ips"`,
    }));
}

function notOfFamilies(service: Service): string {
  return `is not of the Service's spec.ipFamilies (${service.ipFamilies.map((family) => `IP${family}`).join(', ')})`;
}

function refusal(service: Service, field: string, value: string, why: string): Problem {
  return {
    object: `Service ${service.key}`,
    reason: 'InvalidAddress',
    message: `Cannot use ${field}: ${quote(value)} ${why}`,
  };
}
