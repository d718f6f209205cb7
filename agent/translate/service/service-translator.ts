// Translates Services: one load balancer from one Service, its endpoints and the nodes.
// Pure: reads the store of objects, the settings, and which owner has which port. Rules: the Kubernetes API reference
// and kube-proxy, named where they are applied.

import { compactList } from '../../base/compact.ts';
import type { EndpointSlice, Node, Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Dependency } from '../../model/dependencies.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type {
  Family,
  Listener,
  LoadBalancer,
  Member,
  OwnerKey,
  Problem,
  Vip,
} from '../../model/load-balancer.ts';
import { objectInWords } from '../../model/names.ts';
import type { PortRequest } from '../../model/port-owners.ts';
import { type AnnotationValues, readAnnotations } from '../annotations/annotations.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import type { PortWishes, Translation, Translator } from '../translator.ts';
import { healthMonitor } from './health-monitor.ts';
import { engineOf, listenerOf, serviceListenerName } from './listener.ts';
import { membersFromEndpoints, membersFromNodes } from './members.ts';
import { selectEndpoints } from './select-endpoints.ts';
import { type AddressesView, hasPort, serviceVips, whyNotOurs } from './service-vips.ts';
import { sourceRanges } from './source-ranges.ts';

/** What translation reads of the cluster. */
export interface ClusterView {
  service(key: string): Service | undefined;
  /** Whether it is the operator of this host who gives this Service, in a folder of manifests. */
  isOfFolder(key: string): boolean;
  /** The Service of the API in whose place it is served. */
  shadowed(key: string): Service | undefined;
  slices(key: string): readonly EndpointSlice[];
  nodes(): readonly Node[];
}

export interface ServiceTranslatorOptions {
  readonly cluster: ClusterView;
  /** As they are now. */
  readonly settings: () => TranslateSettings;
  /** What a Service has of the address pools. */
  readonly ofPools: AddressesView;
  readonly desired: Pick<DesiredState, 'portOwners' | 'remembered'>;
}

export class ServiceTranslator implements Translator {
  readonly kind = 'Service';
  readonly #options: ServiceTranslatorOptions;

  constructor(options: ServiceTranslatorOptions) {
    this.#options = options;
  }

  ports(key: OwnerKey): PortWishes {
    const { cluster, settings, ofPools } = this.#options;
    const service = cluster.service(key);
    if (service === undefined || whyNotOurs(service, settings()) !== undefined) return NO_PORTS;
    const { values } = annotationsOf(service, settings());
    const isOfFolder = cluster.isOfFolder(key);
    const pools = ofPools(key);
    const ports: PortRequest[] = [];
    for (const vip of serviceVips(service, values.loadBalancerIps, settings(), pools).vips) {
      const { address } = vip;
      const rank = isOfFolder ? RANKS.folder : RANKS[isGiven(vip, service) ? 'given' : 'named'];
      for (const { protocol, port } of service.ports)
        if (hasPort(pools, address, { protocol, port })) ports.push({ address, protocol, port, rank });
    }
    return { created: service.created, ports };
  }

  translate(key: OwnerKey, before: LoadBalancer | undefined): Translation {
    const { cluster } = this.#options;
    const settings = this.#options.settings();
    const service = cluster.service(key);
    const itself: Dependency = `service ${key}`;
    if (service === undefined) return { result: undefined, reads: [] };
    const reason = whyNotOurs(service, settings);
    if (reason !== undefined) return { result: { kind: 'Ignored', key, reason }, reads: [itself] };
    const { values } = annotationsOf(service, settings);
    const membersBy = values.members ?? settings.members;
    const reads: Dependency[] = [itself, `endpoints ${key}`];
    if (membersBy === 'nodes') reads.push('nodes');
    return { result: this.#loadBalancer(service, settings, membersBy, before), reads };
  }

  #loadBalancer(
    service: Service,
    settings: TranslateSettings,
    membersBy: 'pods' | 'nodes',
    previous: LoadBalancer | undefined,
  ): LoadBalancer {
    const { cluster, desired, ofPools } = this.#options;
    const { key, namespace, name } = service;
    const pools = ofPools(key);
    const { values, problems: annotationProblems } = annotationsOf(service, settings);
    const ranges = sourceRanges(service);
    const { vips, problems: vipProblems } = serviceVips(service, values.loadBalancerIps, settings, pools);
    const problems: Problem[] = [...annotationProblems, ...ranges.problems, ...vipProblems];
    const shadowed = cluster.shadowed(key);
    if (shadowed !== undefined && whyNotOurs(shadowed, settings) === undefined) problems.push(duplicate(key));
    if (vips.length === 0 && !pools?.problems.length) problems.push(pending(service));

    const monitor = healthMonitor(service, values, isOnNodes(service, membersBy), problems);
    const listeners: Listener[] = [];
    for (const port of service.ports) {
      if (engineOf(port) === 'kernel') problems.push(notServed(service, port));
      for (const family of ['v4', 'v6'] as const) {
        const own = vips.filter((vip) => vip.family === family);
        if (own.length === 0) continue;
        const listener = serviceListenerName(service, port, family);
        const before = previous?.listeners.find((each) => each.name === listener);
        const found = membersOf(service, port, family, membersBy, cluster, settings, problems);
        const last = before?.pool.members ?? desired.remembered.get(key)?.get(listener) ?? [];
        const members = keepLast(values, found, last);
        const granted = own.filter(({ address }) => hasPort(pools, address, port));
        const addresses = ownAddresses(service, port, granted, desired, problems);
        listeners.push(listenerOf({ service, port, family, addresses, values, ranges, members, monitor }));
      }
    }
    return {
      kind: 'LoadBalancer',
      key,
      namespace,
      name,
      vips,
      listeners: compactList(listeners),
      problems: compactList(problems),
    };
  }
}

const NO_PORTS: PortWishes = { created: 0, ports: [] };

/**
 * A folder's come first: nobody with rights in the cluster alone may take an address that the host itself serves, such
 * as that of the API server. What a Service has been given comes before what another one's author has written.
 */
const RANKS = { folder: 0, given: 1, named: 2 } as const;

/** What its status shows it has, also where it names it. */
function isGiven({ source, address }: Vip, { statusIPs }: Service): boolean {
  return source === 'pool' || source === 'spec.clusterIPs' || statusIPs.includes(address);
}

function annotationsOf(service: Service, settings: TranslateSettings): ReturnType<typeof readAnnotations> {
  return readAnnotations(service.annotations, `Service ${service.key}`, settings.annotationDefaults);
}

/** Those on which no other owner listens. */
function ownAddresses(
  service: Service,
  { protocol, port }: ServicePort,
  vips: readonly Vip[],
  { portOwners }: ServiceTranslatorOptions['desired'],
  problems: Problem[],
): readonly string[] {
  const held = vips
    .map(({ address }) => address)
    .filter((address) => {
      const owner = portOwners.ownerOf({ address, protocol, port });
      if (owner === undefined || owner === service.key) return true;
      problems.push({
        object: `Service ${service.key}`,
        reason: 'AddressInUse',
        message: `Cannot listen on ${address} ${protocol} port ${port}: the ${objectInWords(owner)} holds it`,
        port: { protocol, port },
      });
      return false;
    });
  return compactList(held);
}

function isOnNodes(service: Service, by: 'pods' | 'nodes'): boolean {
  return by === 'nodes' && service.allocateLoadBalancerNodePorts;
}

function membersOf(
  service: Service,
  port: ServicePort,
  family: Family,
  by: 'pods' | 'nodes',
  cluster: ClusterView,
  settings: TranslateSettings,
  problems: Problem[],
): readonly Member[] {
  const selection = selectEndpoints(cluster.slices(service.key), port, family, {
    zone: settings.zone,
    ignoreHints: service.externalTrafficPolicy === 'Local',
  });
  if (!isOnNodes(service, by)) return membersFromEndpoints(selection);
  if (port.nodePort === 0) {
    problems.push({
      object: `Service ${service.key}`,
      reason: 'NodePortMissing',
      message: `Cannot reach members of port ${port.port} by nodes: it has no nodePort; wait for one, or use annotation "headgate.io/members": "pods"`,
      port: { protocol: port.protocol, port: port.port },
    });
    return [];
  }
  return membersFromNodes(cluster.nodes(), service, port, family, selection);
}

/** With `when-empty: keep-last` a pool that would lose its last ready member keeps the members it had. */
function keepLast(
  values: AnnotationValues,
  members: readonly Member[],
  last: readonly Member[],
): readonly Member[] {
  if (values.whenEmpty !== 'keep-last' || members.some((member) => member.state === 'ready')) return members;
  return last.length > 0 ? last : members;
}

function duplicate(key: string): Problem {
  return {
    object: `Service ${key}`,
    reason: 'DuplicateObject',
    message:
      'The Service of the API is not served: a folder of manifests on the load balancer holds one of the same namespace and name, which is served in its place; remove one of the two',
  };
}

function pending(service: Service): Problem {
  return {
    object: `Service ${service.key}`,
    reason: 'AddressPending',
    message:
      'It has no address yet: set annotation "headgate.io/load-balancer-ips" or spec.loadBalancerIP to one of this load balancer',
  };
}

function notServed(service: Service, { protocol, port }: ServicePort): Problem {
  return {
    object: `Service ${service.key}`,
    reason: 'ProtocolNotServed',
    message: `Cannot serve ${protocol} port ${port} yet: only TCP is forwarded so far`,
    port: { protocol, port },
  };
}
