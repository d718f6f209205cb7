// Translates Services: one load balancer from one Service, its endpoints and the nodes. The rules are those of the
// Kubernetes API reference and of kube-proxy; the comments name them.
// Pure: reads the store of objects, the settings, and the index of port owners.

import type { Access } from '../../certificates/last-good.ts';
import type { EndpointSlice, Node, Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Dependency, DesiredState } from '../../model/desired-state.ts';
import type { Family, Listener, LoadBalancer, Member, OwnerKey, Problem } from '../../model/load-balancer.ts';
import type { PortAddress, PortRequest } from '../../model/port-owners.ts';
import { notServed } from '../../protection/judge-names.ts';
import { type AnnotationValues, type ReadAnnotations, readAnnotations } from '../annotations/annotations.ts';
import { ownAddresses } from '../own-addresses.ts';
import { ageOf, precedenceOf } from '../precedence.ts';
import { NO_PORTS, type RequestedPorts, type Translation, type Translator } from '../translate.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import { egressOf, type FoundEgress, type PodsView } from './egress.ts';
import { engineOf, engineProblems, needsTcpPort } from './engine.ts';
import { readErrorPages } from './error-pages.ts';
import { healthMonitor, monitorProblems } from './health-monitor.ts';
import { listenerOf, serviceListenerName } from './listener.ts';
import { memberClients } from './member-clients.ts';
import { type RefusedMember, usableMembers } from './member-rules.ts';
import { membersFromEndpoints, membersFromNodes } from './members.ts';
import { loadBalancerOf } from './plain-listener.ts';
import type { PoliciesView } from './policy-clients.ts';
import { firstEndpoints, type Selection, selectEndpoints } from './select-endpoints.ts';
import { hasPort, reasonToIgnore, serviceVips, unusedPublicAddress } from './service-vips.ts';
import { sourceRanges } from './source-ranges.ts';
import { tlsOf } from './tls.ts';
import type { TranslatorOptions } from './translator-options.ts';

/** The part of the store of objects that translation reads. */
export interface ClusterView extends PodsView, PoliciesView {
  service(key: string): Service | undefined;
  /** True if this Service comes from a folder of manifests of this host. */
  isOfFolder(key: string): boolean;
  /** The Service of the API in whose place it is served. */
  shadowed(key: string): Service | undefined;
  slices(key: string): readonly EndpointSlice[];
  nodes(): readonly Node[];
}

export interface ServiceTranslatorOptions extends TranslatorOptions<ClusterView> {
  /** The Service is about to get an address, or the reason why it gets none; without it every Service is decided. */
  readonly isUndecided?: (key: OwnerKey) => boolean;
  readonly pods?: ReadablePods;
  readonly desired: Pick<DesiredState, 'portOwners' | 'remembered' | 'shares'>;
}

/** Without it, as for commands, pods of the cluster are not known. */
export interface ReadablePods {
  /** Whether the Pods of a namespace can be read. Reads them from now on. */
  access(namespace: string): Access;
  /** The addresses of a Service's pods that an earlier agent had proved. */
  known(key: OwnerKey): ReadonlySet<string>;
}

export class ServiceTranslator implements Translator {
  readonly #options: ServiceTranslatorOptions;

  constructor(options: ServiceTranslatorOptions) {
    this.#options = options;
  }

  ports(key: OwnerKey): RequestedPorts {
    const { cluster, ofPools } = this.#options;
    const settings = this.#options.settings();
    const service = cluster.service(key);
    const pools = ofPools(key);
    if (service === undefined || reasonToIgnore(service, settings, pools !== undefined) !== undefined)
      return NO_PORTS;
    const { values } = annotationsOf(service, settings);
    const isOfFolder = cluster.isOfFolder(key);
    const ports: PortRequest[] = [];
    for (const vip of serviceVips(service, values.loadBalancerIps, settings, pools).vips) {
      const { address } = vip;
      const precedence = precedenceOf(vip, { isOfFolder, statusIPs: service.statusIPs });
      for (const { protocol, port } of service.ports)
        if (hasPort(pools, address, { protocol, port }))
          ports.push({ address, protocol, port, ...precedence });
    }
    return { created: ageOf(service.created, isOfFolder), ports };
  }

  translate(key: OwnerKey, before: LoadBalancer | undefined): Translation {
    const settings = this.#options.settings();
    const service = this.#options.cluster.service(key);
    const itself: Dependency = `service ${key}`;
    if (service === undefined) return { result: undefined, reads: [] };
    const reason = reasonToIgnore(service, settings, this.#options.ofPools(key) !== undefined);
    if (reason !== undefined) return { result: { kind: 'Ignored', key, reason }, reads: [itself] };
    const annotations = annotationsOf(service, settings);
    const membersBy = annotations.values.members ?? settings.members;
    const isOnNodes = membersBy === 'nodes' && service.allocateLoadBalancerNodePorts;
    const reads: Dependency[] = [itself, `endpoints ${key}`];
    if (isOnNodes) reads.push('nodes');
    return { result: this.#loadBalancer(service, settings, annotations, isOnNodes, before, reads), reads };
  }

  #loadBalancer(
    service: Service,
    settings: TranslateSettings,
    annotations: ReadAnnotations,
    isOnNodes: boolean,
    previous: LoadBalancer | undefined,
    reads: Dependency[],
  ): LoadBalancer {
    const { cluster, desired, ofPools, isUndecided, certificates } = this.#options;
    const { values } = annotations;
    const { key, namespace } = service;
    const pools = ofPools(key);
    const ranges = sourceRanges(service);
    const isClosed = annotations.isClosed || ranges.isClosed || needsTcpPort(service, values);
    const { vips, problems: vipProblems } = serviceVips(service, values.loadBalancerIps, settings, pools);
    const problems: Problem[] = [
      ...annotations.problems,
      ...annotations.closedBy.map((name) => problem(key, 'InvalidAnnotation', notServed(name, 'Service'))),
      ...engineProblems(service, values),
      ...monitorProblems(service, values, isOnNodes),
      ...ranges.problems,
      ...vipProblems,
      ...unusedPublicAddress(key, values.publicAddress, vips),
    ];
    const pages = readErrorPages(values.errorPages, `Service ${key}`, namespace, certificates);
    reads.push(...pages.reads);
    problems.push(...pages.problems);
    const log = values.log ?? settings.connectionLog;
    const shadowed = cluster.shadowed(key);
    if (shadowed !== undefined && reasonToIgnore(shadowed, settings, true) === undefined)
      problems.push(duplicate(key));
    if (vips.length === 0 && !pools?.problems.length && isUndecided?.(key) !== true)
      problems.push(pending(key));

    const found = values.egress ? this.#egress(service, vips, settings, previous) : undefined;
    problems.push(...(found?.problems ?? []));
    reads.push(...(found?.reads ?? []));
    const slices = this.#slices(service);
    const ofPolicies = new Set<Dependency>();
    const listeners: Listener[] = [];
    for (const port of service.ports) {
      const monitor = healthMonitor(service, port, values, isOnNodes);
      const ofPort = tlsOf(service, port, annotations, certificates);
      const { tls, memberTls, isServed } = ofPort;
      problems.push(...ofPort.problems);
      for (const read of ofPort.reads) if (!reads.includes(read)) reads.push(read);
      for (const family of ['v4', 'v6'] as const) {
        const ofFamily = vips.filter((vip) => vip.family === family);
        if (ofFamily.length === 0) continue;
        const listener = serviceListenerName(service, port, family);
        const before = previous?.listeners.find((each) => each.name === listener);
        const last = before?.pool.members ?? desired.remembered.get(key)?.get(listener) ?? [];
        const all = this.#members(service, slices, port, family, settings.zone, isOnNodes, problems);
        const isListening = (place: PortAddress) => desired.portOwners.ownerOf(place) !== undefined;
        const usable = (some: readonly Member[]) => usableMembers(some, port.protocol, settings, isListening);
        const { usable: now, refused } = usable(all);
        if (refused.length > 0) problems.push(refusedMembers(key, port, refused));
        for (const { member, isVip } of refused) if (isVip) reads.push(`vip ${member.address}`);
        const kept = keepLast(values, now, () => usable(last).usable);
        const isDirect = values.members === 'direct' && engineOf(port, values) === 'kernel';
        const reached = isDirect ? kept.filter((member) => member.port === port.port) : kept;
        if (reached.length < kept.length) problems.push(otherPorts(key, port, kept));
        const behind = isOnNodes ? behindNodes(slices, port, family) : undefined;
        const allowed = { [family]: ranges.allowed[family] };
        const clients = memberClients(
          { service, port, members: reached, behind, allowed },
          { cluster, settings, reads: ofPolicies },
        );
        problems.push(...clients.problems);
        const granted = ofFamily
          .map(({ address }) => address)
          .filter((address) => isServed && !isClosed && hasPort(pools, address, port));
        const { own: addresses, refused: taken } = ownAddresses(key, port, granted, desired.portOwners);
        problems.push(...taken);
        const parts = {
          service,
          port,
          family,
          addresses,
          values,
          log,
          tls,
          memberTls,
          errorPages: pages.pages,
        };
        const { members } = clients;
        listeners.push(listenerOf({ ...parts, allowed: clients.allowed[family] ?? [], members, monitor }));
      }
    }
    for (const read of ofPolicies) reads.push(read);
    const egress = found?.egress;
    return { ...loadBalancerOf(key, vips, listeners, problems), ...(egress && { egress }) };
  }

  #egress(
    service: Service,
    vips: LoadBalancer['vips'],
    settings: TranslateSettings,
    previous: LoadBalancer | undefined,
  ): FoundEgress {
    const { cluster, desired, pods } = this.#options;
    const { key, ports } = service;
    const before = previous?.egress?.pods.map(({ address }) => address);
    return egressOf(service, vips, cluster.slices(key), {
      pods: cluster,
      access: (namespace) => pods?.access(namespace) ?? { kind: 'pending' },
      known: new Set([...(before ?? []), ...(pods?.known(key) ?? [])]),
      hasPortAt: (address) =>
        ports.some(({ protocol, port }) => desired.portOwners.ownerOf({ address, protocol, port }) === key),
      created: ageOf(service.created, cluster.isOfFolder(key)),
      isAmongHosts: settings.isAmongHosts,
    });
  }

  #slices({ key, ports }: Service): readonly EndpointSlice[] {
    const { cluster, desired } = this.#options;
    const slices = cluster.slices(key);
    const most = desired.shares.servers.bound();
    return most === 0 ? slices : firstEndpoints(slices, Math.ceil(most / ports.length));
  }

  #members(
    service: Service,
    slices: readonly EndpointSlice[],
    { name, protocol, port, nodePort }: ServicePort,
    family: Family,
    zone: string,
    isOnNodes: boolean,
    problems: Problem[],
  ): readonly Member[] {
    const { cluster } = this.#options;
    const ignoreHints = service.externalTrafficPolicy === 'Local';
    const selection = selectEndpoints(slices, { name, protocol }, family, { zone, ignoreHints });
    if (!isOnNodes) return membersFromEndpoints(selection);
    if (nodePort !== 0) return membersFromNodes(cluster.nodes(), service, nodePort, family, selection);
    const message = `Cannot reach members of port ${port} by nodes: it has no nodePort; wait for one, or use annotation "headgate.io/members": "pods"`;
    problems.push({ ...problem(service.key, 'NodePortMissing', message), port: { protocol, port } });
    return [];
  }
}

/** The endpoints that kube-proxy on a node may send to. */
function behindNodes(
  slices: readonly EndpointSlice[],
  { name, protocol }: ServicePort,
  family: Family,
): Selection {
  return selectEndpoints(slices, { name, protocol }, family, { zone: '', ignoreHints: true });
}

function annotationsOf(service: Service, settings: TranslateSettings): ReadAnnotations {
  const read = readAnnotations(service.annotations, `Service ${service.key}`, settings.annotationDefaults);
  const { values } = read;
  if (!settings.isAmongHosts || values.sourceAddress !== 'client' || values.members === 'direct') return read;
  if (service.ports.every((port) => engineOf(port, values) === 'haproxy')) return read;
  const why = 'members would answer to another host than the one that the request came through';
  const message = `Cannot use "headgate.io/source-address": "client" with the setting "hosts": ${why}; use "headgate.io/members": "direct"`;
  return {
    ...read,
    values: { ...values, sourceAddress: 'load-balancer' },
    problems: [...read.problems, problem(service.key, 'InvalidAnnotation', message)],
  };
}

/** With `when-empty: keep-last` a pool keeps its last members instead of losing its last ready one. */
function keepLast(
  values: AnnotationValues,
  members: readonly Member[],
  lastOf: () => readonly Member[],
): readonly Member[] {
  if (values.whenEmpty !== 'keep-last' || members.some((member) => member.state === 'ready')) return members;
  const last = lastOf();
  return last.length > 0 ? last : members;
}

function problem(key: OwnerKey, reason: Problem['reason'], message: string): Problem {
  return { object: `Service ${key}`, reason, message };
}

function duplicate(key: OwnerKey): Problem {
  const message =
    'The Service of the API is not served: a folder of manifests on the load balancer has a Service of the same namespace and name, which is served instead; remove one of the two';
  return problem(key, 'DuplicateObject', message);
}

/** Direct members get packets unchanged, also the port. */
function otherPorts(key: OwnerKey, { protocol, port }: ServicePort, members: readonly Member[]): Problem {
  const other = members.find((member) => member.port !== port)?.port;
  const message = `Cannot use annotation "headgate.io/members": "direct" for ${protocol} port ${port}: members have port ${other}, and get packets unchanged; let "targetPort" be ${port}`;
  return { ...problem(key, 'InvalidAnnotation', message), port: { protocol, port } };
}

function pending(key: OwnerKey): Problem {
  const message =
    'Waiting for an address, because no AddressPool gives it one: create an AddressPool, or set annotation "headgate.io/load-balancer-ips" to an address of this load balancer';
  return problem(key, 'AddressPending', message);
}

function refusedMembers(
  key: OwnerKey,
  { protocol, port }: ServicePort,
  refused: readonly RefusedMember[],
): Problem {
  const [first] = refused;
  const more = refused.length - 1;
  const others = more === 0 ? '' : ` (and ${more} more endpoint${more === 1 ? '' : 's'})`;
  const message = `Cannot send to ${first?.member.name} for port ${port}: ${first?.reason}${others}`;
  return { ...problem(key, 'InvalidEndpoint', message), port: { protocol, port } };
}
