// Parses the objects that the agent reads (kinds.ts), and lists of them, as kubectl prints them and the API sends them;
// ignores other kinds. Every object of the agent passes here, so the parser is strict. Pure: never throws; a mistake is a
// Problem and costs only its own object.

import { label, subdomain } from '../base/name-forms.ts';
import { faultsOf, isMapping, type Judgement, type Rule, shownValue } from '../base/validate.ts';
import type { Problem, ProblemReason } from '../model/load-balancer.ts';
import { claimSchema, storedClaimOf } from './address-claim.ts';
import { poolSchema, storedPoolOf } from './address-pool.ts';
import { peerSchema, storedPeerOf } from './bgp-peer.ts';
import { certificateSchema, configMapOf, hasCertificates, secretOf } from './certificate-objects.ts';
import {
  backendTlsPolicyOf,
  backendTlsPolicySchema,
  gatewayClassOf,
  gatewayClassSchema,
  gatewayOf,
  gatewaySchema,
  listenerSetOf,
  listenerSetSchema,
  namespaceOf,
  namespaceSchema,
  referenceGrantOf,
  referenceGrantSchema,
} from './gateway/gateway-schemas.ts';
import { GATEWAY_GROUP } from './gateway/names.ts';
import {
  connectionRouteOf,
  connectionRouteSchema,
  grpcRouteOf,
  grpcRouteSchema,
  httpRouteOf,
  httpRouteSchema,
  tlsRouteOf,
  tlsRouteSchema,
} from './gateway/route-schemas.ts';
import { ingressClassOf, ingressClassSchema, ingressOf, ingressSchema } from './ingress/ingress-schemas.ts';
import { ALL_KINDS, isKind, KINDS, type Kind } from './kinds.ts';
import { misplacedRanges } from './misplaced-ranges.ts';
import { networkPolicyOf, networkPolicySchema } from './network-policy.ts';
import { endpointsSchema, nodeSchema, podSchema, serviceSchema, sliceSchemas } from './object-schemas.ts';
import type { KubernetesObject } from './objects.ts';
import { endpointsOf, nodeOf, podOf, serviceOf, sliceOf } from './prune-object.ts';

export interface ParsedObjects {
  readonly objects: readonly KubernetesObject[];
  readonly problems: readonly Problem[];
}

/**
 * `path`: of the file, with which messages begin, or ''. A problem has it as its object if the object has no usable
 * name. null and undefined (an empty document) give nothing.
 */
export function parseObject(json: unknown, path: string): ParsedObjects {
  const found: Found = { objects: [], problems: [] };
  if (json === null || json === undefined) return found;
  const header = isMapping(json) ? json : {};
  const listed = typeof header.kind === 'string' ? listedKind(header.kind) : undefined;
  if (listed !== undefined) addList(header, listed, path, found);
  else addObject(json, path, '', found);
  return found;
}

interface Found {
  readonly objects: KubernetesObject[];
  readonly problems: Problem[];
}

/** What an API server with all channels of Gateway API takes besides `v1`, with the same fields. */
const OLD_VERSIONS: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  GatewayClass: ['v1beta1', 'v1alpha2'],
  Gateway: ['v1beta1', 'v1alpha2'],
  HTTPRoute: ['v1beta1', 'v1alpha2'],
  GRPCRoute: ['v1alpha2'],
  TLSRoute: ['v1alpha3', 'v1alpha2'],
  TCPRoute: ['v1alpha2'],
  UDPRoute: ['v1alpha2'],
  ReferenceGrant: ['v1beta1', 'v1alpha2'],
  BackendTLSPolicy: ['v1alpha3'],
};

/** Only Kubernetes and Headgate have kinds in these groups: another spelling of a kind is a mistake. */
export const GROUPS: ReadonlySet<string> = new Set(
  Object.values(KINDS).map(({ apiVersion }) => groupOf(apiVersion)),
);
const BY_LOWER_CASE: ReadonlyMap<string, Kind> = new Map(ALL_KINDS.map((kind) => [kind.toLowerCase(), kind]));

/** `Service` for `ServiceList`, '' for `List`; undefined for other kinds. */
export function listedKind(kind: string): string | undefined {
  if (!kind.endsWith('List')) return undefined;
  const listed = kind.slice(0, -'List'.length);
  return listed === '' || isKind(listed) ? listed : undefined;
}

/** The API sends the items of a typed list without kind and apiVersion. */
function addList(list: Readonly<Record<string, unknown>>, listed: string, path: string, found: Found): void {
  const { items, apiVersion } = list;
  if (items === null || items === undefined) return;
  if (!Array.isArray(items)) {
    const message = `${beginning(path)}${String(list.kind)}: items: ${shownValue(items)} is not a list`;
    found.problems.push({ object: path || String(list.kind), reason: 'InvalidObject', message });
    return;
  }
  for (const [index, item] of items.entries()) {
    const named = listed === '' || !isMapping(item) ? item : { ...item, kind: listed, apiVersion };
    addObject(named, path, `items[${index}]`, found);
  }
}

/** `item`: its place in a list, '' for a single object. */
function addObject(json: unknown, path: string, item: string, found: Found): void {
  const place = [path, item].filter((part) => part !== '').join(': ');
  const refuse = (reason: ProblemReason, object: string, fault: string) => {
    const named = object === '' ? place : [path, object].filter((part) => part !== '').join(': ');
    found.problems.push({ object: object || path || item, reason, message: `${beginning(named)}${fault}` });
  };
  if (!isMapping(json)) {
    refuse('InvalidObject', '', `${typeInWords(json)} is not a Kubernetes object`);
    return;
  }
  const { kind, apiVersion } = json;
  if (typeof kind === 'string' && listedKind(kind) !== undefined) {
    refuse('InvalidObject', '', `${kind}: a list inside a list is not supported`);
    return;
  }
  if (typeof kind !== 'string' || kind === '' || typeof apiVersion !== 'string' || apiVersion === '') {
    const field = typeof kind !== 'string' || kind === '' ? 'kind' : 'apiVersion';
    refuse('InvalidObject', '', `${field}: missing, every Kubernetes object has one`);
    return;
  }
  const meant = BY_LOWER_CASE.get(kind.toLowerCase());
  if (meant === undefined || !GROUPS.has(groupOf(apiVersion))) return;
  if (kind !== meant) {
    refuse('InvalidObject', '', `kind: ${shownValue(kind)} is not "${meant}"`);
    return;
  }
  const expected = KINDS[meant].apiVersion;
  const object = nameOf(kind, json);
  const subject = object === '' ? `${kind}: ` : '';
  const isOld = (OLD_VERSIONS[meant] ?? []).some((version) => apiVersion === `${GATEWAY_GROUP}/${version}`);
  if (apiVersion !== expected && !isOld) {
    refuse('InvalidObject', object, `${subject}apiVersion: ${shownValue(apiVersion)} is not "${expected}"`);
    return;
  }
  if ((kind === 'Secret' || kind === 'ConfigMap') && !hasCertificates(json)) return;
  if (kind === 'EndpointSlice' && json.addressType === 'FQDN') {
    refuse(
      'InvalidEndpoint',
      object,
      `${subject}addressType: "FQDN" is not supported, only IPv4 and IPv6 are`,
    );
    return;
  }
  const ranges = kind === 'Service' ? misplacedRanges(json) : '';
  if (ranges !== '') {
    const fault = `${ranges}: the field is unknown, the nearest is "spec.loadBalancerSourceRanges", which protects`;
    refuse('InvalidObject', object, `${subject}${fault}`);
    return;
  }
  const read = readKind(kind, json);
  if (read.success) found.objects.push(read.data);
  else refuse('InvalidObject', object, `${subject}${faultsOf(read.faults, json)}`);
}

function readKind(kind: string, json: Readonly<Record<string, unknown>>): Judgement<KubernetesObject> {
  if (kind === 'EndpointSlice') {
    return read(json.addressType === 'IPv6' ? sliceSchemas.IPv6 : sliceSchemas.IPv4, json, sliceOf);
  }
  const reader = READERS[kind as Exclude<Kind, 'EndpointSlice'>];
  return reader(json);
}

type Reader = (json: unknown) => Judgement<KubernetesObject>;

const READERS: Readonly<Record<Exclude<Kind, 'EndpointSlice'>, Reader>> = {
  Service: (json) => read(serviceSchema, json, serviceOf),
  Endpoints: (json) => read(endpointsSchema, json, endpointsOf),
  Node: (json) => read(nodeSchema, json, nodeOf),
  Pod: (json) => read(podSchema, json, podOf),
  Secret: (json) => read(certificateSchema, json, secretOf),
  ConfigMap: (json) => read(certificateSchema, json, configMapOf),
  AddressPool: (json) => read(poolSchema, json, storedPoolOf),
  AddressClaim: (json) => read(claimSchema, json, storedClaimOf),
  BGPPeer: (json) => read(peerSchema, json, storedPeerOf),
  GatewayClass: (json) => read(gatewayClassSchema, json, gatewayClassOf),
  Gateway: (json) => read(gatewaySchema, json, gatewayOf),
  ListenerSet: (json) => read(listenerSetSchema, json, listenerSetOf),
  HTTPRoute: (json) => read(httpRouteSchema, json, httpRouteOf),
  GRPCRoute: (json) => read(grpcRouteSchema, json, grpcRouteOf),
  TLSRoute: (json) => read(tlsRouteSchema, json, tlsRouteOf),
  TCPRoute: (json) => read(connectionRouteSchema, json, (route) => connectionRouteOf('TCPRoute', route)),
  UDPRoute: (json) => read(connectionRouteSchema, json, (route) => connectionRouteOf('UDPRoute', route)),
  ReferenceGrant: (json) => read(referenceGrantSchema, json, referenceGrantOf),
  BackendTLSPolicy: (json) => read(backendTlsPolicySchema, json, backendTlsPolicyOf),
  Namespace: (json) => read(namespaceSchema, json, namespaceOf),
  IngressClass: (json) => read(ingressClassSchema, json, ingressClassOf),
  Ingress: (json) => read(ingressSchema, json, ingressOf),
  NetworkPolicy: (json) => read(networkPolicySchema, json, (policy) => networkPolicyOf(policy, json)),
};

function read<T>(
  schema: Rule<T>,
  json: unknown,
  prune: (checked: T) => KubernetesObject,
): Judgement<KubernetesObject> {
  const judgement = schema.judge(json);
  return judgement.success ? { success: true, data: prune(judgement.data) } : judgement;
}

/** `Service default/web`, '' if the object has no usable name. */
export function nameOf(kind: string, json: Readonly<Record<string, unknown>>): string {
  const { name, namespace } = isMapping(json.metadata) ? json.metadata : {};
  const form = kind === 'Service' ? label : subdomain;
  if (typeof name !== 'string' || !form.check(name)) return '';
  if (isKind(kind) && KINDS[kind].isOfCluster) return `${kind} ${name}`;
  const space = namespace || 'default';
  return typeof space === 'string' && label.check(space) ? `${kind} ${space}/${name}` : '';
}

/** Without the value: a file that holds no object may hold a secret. */
function typeInWords(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'string' ? 'a text' : `a ${typeof value}`;
}

export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

function beginning(text: string): string {
  return text === '' ? '' : `${text}: `;
}
