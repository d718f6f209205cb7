// From objects to the model: one load balancer from one Service, its endpoints and the nodes.
// Pure: reads the cluster and the model it is to change, returns the change; only `keys` and those whose address
// they contend for are translated. Rules: the Kubernetes API reference and kube-proxy, named where they are applied.

import { compactList } from '../base/compact.ts';
import { sameValue } from '../base/same-value.ts';
import type { EndpointSlice, Node, Service, ServicePort } from '../kubernetes/objects.ts';
import type {
  Family,
  Ignored,
  Listener,
  LoadBalancer,
  Member,
  Problem,
  Vip,
} from '../model/load-balancer.ts';
import { type AnnotationValues, readAnnotationDefaults, readAnnotations } from './annotations/annotations.ts';
import { type Claim, VipClaims } from './port-owners.ts';
import { healthMonitor } from './service/health-monitor.ts';
import { listenerName, listenerOf } from './service/listener.ts';
import { membersFromEndpoints, membersFromNodes } from './service/members.ts';
import { selectEndpoints } from './service/select-endpoints.ts';
import {
  type AddressesView,
  hasPort,
  noPools,
  type OwnershipSettings,
  type PoolAddresses,
  serviceVips,
  whyNotOurs,
} from './service/service-vips.ts';
import { sourceRanges } from './service/source-ranges.ts';

/** What translation reads of the cluster. */
export interface ClusterView {
  service(key: string): Service | undefined;
  /** Whether it is the operator of this host who gives this Service, in a folder of manifests. */
  isOfFolder(key: string): boolean;
  /** The Service of the API in whose place it is served. */
  eclipsed(key: string): Service | undefined;
  slices(key: string): readonly EndpointSlice[];
  nodes(): readonly Node[];
}

export interface TranslateSettings extends OwnershipSettings {
  readonly members: 'pods' | 'nodes';
  readonly zone: string;
  /** What an annotation that is not there means. */
  readonly annotationDefaults: AnnotationValues;
}

/** From the settings of the same names. */
export function translateSettings(
  settings: OwnershipSettings &
    Pick<TranslateSettings, 'members' | 'zone'> & { readonly defaults: Readonly<Record<string, string>> },
): TranslateSettings {
  const { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone, defaults } = settings;
  const annotationDefaults = readAnnotationDefaults(defaults).values;
  return { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone, annotationDefaults };
}

/** The desired state, by load-balancer key, and what is needed to change it. */
export interface Model {
  readonly loadBalancers: Map<string, LoadBalancer>;
  readonly ignored: Map<string, Ignored>;
  /** Keys whose members are nodes. */
  readonly onNodes: Set<string>;
  readonly claims: VipClaims;
  /** By Service and listener: the members that a pool had when the agent before this one ended (state/kept-members.ts). */
  readonly remembered: Map<string, Map<string, readonly Member[]>>;
}

export function emptyModel(): Model {
  return {
    loadBalancers: new Map(),
    ignored: new Map(),
    onNodes: new Set(),
    claims: new VipClaims(),
    remembered: new Map(),
  };
}

/**
 * Brings `model` to what the objects of `keys` say now and returns the keys whose load balancer changed.
 * `ofPools` says what a Service has of the address pools.
 */
export function translateChanged(
  cluster: ClusterView,
  model: Model,
  keys: Iterable<string>,
  settings: TranslateSettings,
  ofPools: AddressesView = noPools,
): ReadonlySet<string> {
  const dirty = new Set(keys);
  for (const key of [...dirty])
    for (const other of updateClaims(cluster, model, key, settings, ofPools(key))) dirty.add(other);
  const changed = new Set<string>();
  for (const key of dirty) {
    const result = translate(key, cluster, model, settings, ofPools(key));
    if (put(model, key, result)) changed.add(key);
  }
  return changed;
}

function updateClaims(
  cluster: ClusterView,
  model: Model,
  key: string,
  settings: TranslateSettings,
  ofPools: PoolAddresses | undefined,
): Iterable<string> {
  const service = cluster.service(key);
  if (service === undefined || whyNotOurs(service, settings) !== undefined)
    return model.claims.update(key, 0, []);
  const { values } = annotationsOf(service, settings);
  const isOfFolder = cluster.isOfFolder(key);
  const claims: Claim[] = [];
  for (const vip of serviceVips(service, values.loadBalancerIps, settings, ofPools).vips) {
    const { address } = vip;
    const rank = isOfFolder ? RANKS.folder : RANKS[isGiven(vip, service) ? 'given' : 'named'];
    for (const { protocol, port } of service.ports)
      if (hasPort(ofPools, address, { protocol, port })) claims.push({ address, protocol, port, rank });
  }
  return model.claims.update(key, service.created, claims);
}

/**
 * A folder's come first: nobody with rights in the cluster alone may take an address that the host itself serves, such
 * as that of the API server. What a Service has been given comes before what another one's author has written.
 */
const RANKS = { folder: 0, given: 1, named: 2 } as const;

/** What its status shows it has, also where it names it. */
function isGiven({ source, address }: Vip, { statusIPs }: Service): boolean {
  return source === 'pool' || source === 'spec.clusterIPs' || statusIPs.includes(address);
}

function put(model: Model, key: string, result: LoadBalancer | Ignored | undefined): boolean {
  const before = model.loadBalancers.get(key);
  if (result?.kind === 'Ignored') model.ignored.set(key, result);
  else model.ignored.delete(key);
  if (result?.kind === 'LoadBalancer') {
    if (before !== undefined && sameValue(before, result)) return false;
    model.loadBalancers.set(key, result);
    return true;
  }
  model.onNodes.delete(key);
  return model.loadBalancers.delete(key);
}

/** undefined where there is no such Service. */
function translate(
  key: string,
  cluster: ClusterView,
  model: Model,
  settings: TranslateSettings,
  ofPools: PoolAddresses | undefined,
): LoadBalancer | Ignored | undefined {
  const service = cluster.service(key);
  if (service === undefined) return undefined;
  const reason = whyNotOurs(service, settings);
  if (reason !== undefined) return { kind: 'Ignored', key, reason };

  const { values, problems: annotationProblems } = annotationsOf(service, settings);
  const ranges = sourceRanges(service);
  const { vips, problems: vipProblems } = serviceVips(service, values.loadBalancerIps, settings, ofPools);
  const problems: Problem[] = [...annotationProblems, ...ranges.problems, ...vipProblems];
  const eclipsed = cluster.eclipsed(key);
  if (eclipsed !== undefined && whyNotOurs(eclipsed, settings) === undefined) problems.push(duplicate(key));
  if (vips.length === 0 && !ofPools?.problems.length) problems.push(pending(service));

  const membersBy = values.members ?? settings.members;
  if (membersBy === 'nodes') model.onNodes.add(key);
  else model.onNodes.delete(key);
  const previous = model.loadBalancers.get(key);
  const monitor = healthMonitor(service, values, isOnNodes(service, membersBy), problems);
  const listeners: Listener[] = [];
  for (const port of service.ports) {
    if (port.protocol !== 'TCP') problems.push(notServed(service, port));
    for (const family of ['v4', 'v6'] as const) {
      const own = vips.filter((vip) => vip.family === family);
      if (own.length === 0) continue;
      const name = listenerName(service, port, family);
      const before = previous?.listeners.find((listener) => listener.name === name);
      const found = membersOf(service, port, family, membersBy, cluster, settings, problems);
      const last = before?.pool.members ?? model.remembered.get(key)?.get(name) ?? [];
      const members = keepLast(values, found, last);
      const granted = own.filter(({ address }) => hasPort(ofPools, address, port));
      const addresses = heldAddresses(service, port, granted, model, problems);
      listeners.push(listenerOf({ service, port, family, addresses, values, ranges, members, monitor }));
    }
  }
  return {
    kind: 'LoadBalancer',
    key,
    namespace: service.namespace,
    name: service.name,
    vips,
    listeners: compactList(listeners),
    problems: compactList(problems),
  };
}

function annotationsOf(service: Service, settings: TranslateSettings): ReturnType<typeof readAnnotations> {
  return readAnnotations(service.annotations, `Service ${service.key}`, settings.annotationDefaults);
}

function heldAddresses(
  service: Service,
  { protocol, port }: ServicePort,
  vips: readonly Vip[],
  model: Model,
  problems: Problem[],
): readonly string[] {
  const held = vips
    .map(({ address }) => address)
    .filter((address) => {
      const holder = model.claims.holder({ address, protocol, port });
      if (holder === undefined || holder === service.key) return true;
      problems.push({
        object: `Service ${service.key}`,
        reason: 'AddressInUse',
        message: `Cannot listen on ${address} ${protocol} port ${port}: the Service "${holder}" holds it`,
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
