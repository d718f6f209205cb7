// The CustomResourceDefinitions of AddressPool, AddressClaim and BGPPeer, built from the schemas that the agent reads them with. Pure.

import type { Rule } from '../agent/base/validate.ts';
import { claimSpecSchema } from '../agent/kubernetes/address-claim.ts';
import { poolSpecSchema } from '../agent/kubernetes/address-pool.ts';
import { PEER_RULES, peerSpecSchema } from '../agent/kubernetes/bgp-peer.ts';
import { HOSTS_OPEN_API } from '../agent/kubernetes/host-report.ts';
import { ADDRESS_GROUP } from '../agent/kubernetes/object-names.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Mapping = { readonly [name: string]: Json };

const count: Mapping = {
  type: 'object',
  description:
    'Numbers of addresses as decimal strings, because an IPv6 pool has more addresses than an integer can hold.',
  properties: Object.fromEntries(
    ['total', 'free', 'used', 'held', 'conflicting'].map((name) => [name, { type: 'string' }]),
  ),
};

const conditions: Mapping = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: {
    type: 'object',
    required: ['type', 'status'],
    properties: {
      type: { type: 'string', maxLength: 316 },
      status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
      reason: { type: 'string', maxLength: 1024 },
      message: { type: 'string', maxLength: 32768 },
      lastTransitionTime: { type: 'string', format: 'date-time' },
      observedGeneration: { type: 'integer', format: 'int64' },
    },
  },
};

const poolStatus: Mapping = {
  type: 'object',
  properties: {
    state: { type: 'string', description: 'Active, Draining, Conflicting or Invalid.' },
    message: { type: 'string', description: 'The fault of the pool.' },
    conditions: {
      ...conditions,
      description: 'Ready: the blocks are in force as the object asks. Announced: by all hosts, by BGP.',
    },
    ...ofHosts('announce it'),
    ipv4: count,
    ipv6: count,
  },
};

const peerStatus: Mapping = {
  type: 'object',
  properties: {
    conditions: {
      ...conditions,
      description: 'Accepted: hosts use the object. Established: the sessions of all hosts are.',
    },
    ...ofHosts('have a session'),
  },
};

function ofHosts(what: string): Mapping {
  return {
    hosts: HOSTS_OPEN_API,
    hostsUp: { type: 'string', description: `How many hosts ${what}, of those that report: 2/3.` },
  };
}

const claimStatus: Mapping = { type: 'object', properties: { conditions } };

/** The type of a column: `wide` ones only with `kubectl get -o wide`. */
type Column = readonly [name: string, type: string, jsonPath: string, place?: 'wide'];
const AGE: Column = ['Age', 'date', '.metadata.creationTimestamp'];

/** Path in the repository → content of the file. */
export function crdFiles(): ReadonlyMap<string, string> {
  return new Map([
    [
      'deploy/kubernetes/addresspools.yaml',
      crd('AddressPool', 'Addresses for Services of type LoadBalancer.', poolSpecSchema, poolStatus, [
        ['State', 'string', '.status.state'],
        ['Blocks', 'string', '.spec.blocks'],
        ['Priority', 'integer', '.spec.priority'],
        ['Used-IPv4', 'string', '.status.ipv4.used'],
        ['Held-IPv4', 'string', '.status.ipv4.held'],
        ['Free-IPv4', 'string', '.status.ipv4.free'],
        ['Used-IPv6', 'string', '.status.ipv6.used', 'wide'],
        ['Held-IPv6', 'string', '.status.ipv6.held', 'wide'],
        ['Free-IPv6', 'string', '.status.ipv6.free', 'wide'],
        ['Namespaces', 'string', '.spec.allowed.namespaces', 'wide'],
        ['Ports', 'string', '.spec.allowed.ports', 'wide'],
        ['Announce', 'string', '.spec.announce', 'wide'],
        ['Peers', 'string', '.spec.bgp.peers', 'wide'],
        ['Hosts', 'string', '.status.hostsUp', 'wide'],
        AGE,
      ]),
    ],
    [
      'deploy/kubernetes/addressclaims.yaml',
      crd(
        'AddressClaim',
        'The owner of an address of a pool, or of some of its ports. A user can create one to reserve the address.',
        claimSpecSchema,
        claimStatus,
        [
          ['Address', 'string', '.spec.address'],
          ['Public', 'string', '.spec.public', 'wide'],
          ['Pool', 'string', '.spec.pool'],
          ['Service', 'string', '.spec.service'],
          ['Held-Until', 'string', '.spec.heldUntil'],
          ['Reserved', 'boolean', '.spec.reserved'],
          AGE,
        ],
      ),
    ],
    [
      'deploy/kubernetes/bgppeers.yaml',
      crd(
        'BGPPeer',
        'A router that gets the routes of VIPs from the hosts that announce by BGP.',
        peerSpecSchema,
        peerStatus,
        [
          ['Address', 'string', '.spec.address'],
          ['ASN', 'integer', '.spec.asn'],
          ['Accepted', 'string', conditionPath('Accepted')],
          ['Established', 'string', conditionPath('Established')],
          ['Hosts', 'string', '.status.hostsUp'],
          ['Reason', 'string', '.status.conditions[?(@.type=="Established")].message', 'wide'],
          AGE,
        ],
        PEER_RULES,
      ),
    ],
  ]);
}

function conditionPath(type: string): string {
  return `.status.conditions[?(@.type=="${type}")].status`;
}

function crd(
  kind: string,
  description: string,
  { openApi }: Rule<unknown>,
  status: Mapping,
  columns: readonly Column[],
  rules: readonly Mapping[] = [],
): string {
  const singular = kind.toLowerCase();
  const plural = `${singular}s`;
  const openAPIV3Schema = {
    type: 'object',
    description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: openApi as Mapping,
      status,
    },
    ...(rules.length === 0 ? {} : { 'x-kubernetes-validations': rules }),
  };
  const definition: Json = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${ADDRESS_GROUP}` },
    spec: {
      group: ADDRESS_GROUP,
      scope: 'Cluster',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular,
        // `ap`, `ac`, `bgpp`.
        shortNames: [kind.replaceAll(/[a-z]/g, '').toLowerCase()],
        categories: ['headgate'],
      },
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns.map(([name, type, jsonPath, place]) => ({
            name,
            type,
            jsonPath,
            // kubectl shows columns of another priority than 0 only with `-o wide`.
            ...(place === 'wide' ? { priority: 1 } : {}),
          })),
          schema: { openAPIV3Schema },
        },
      ],
    },
  };
  const source = `agent/kubernetes/${kind.replace(/^(Address|BGP)/, '$1-').toLowerCase()}.ts`;
  return `# Written by scripts/write-crds.ts from ${source}: change it there.\n${yaml(definition)}`;
}

/** Block style, with quotes if YAML would read a string as another type. */
function yaml(value: Json): string {
  return `${lines(value).join('\n')}\n`;
}

function lines(value: Json): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((one: Json) => hung('- ', lines(one)));
  if (typeof value !== 'object' || value === null) return [scalar(value)];
  return Object.entries(value).flatMap(([name, one]: [string, Json]) => {
    const isEmpty = typeof one === 'object' && one !== null && Object.keys(one).length === 0;
    if (isEmpty) return [`${scalar(name)}: ${Array.isArray(one) ? '[]' : '{}'}`];
    if (typeof one !== 'object' || one === null) return [`${scalar(name)}: ${scalar(one)}`];
    return [`${scalar(name)}:`, ...lines(one).map((line) => `  ${line}`)];
  });
}

function hung(mark: string, [first = '', ...rest]: readonly string[]): string[] {
  return [`${mark}${first}`, ...rest.map((line) => `  ${line}`)];
}

function scalar(value: Json): string {
  const isPlain = typeof value === 'string' && /^[A-Za-z.][A-Za-z0-9./-]*$/.test(value);
  const isWord =
    typeof value === 'string' && /^(?:true|false|null|yes|no|on|off|y|n|\.nan|\.inf)$/i.test(value);
  return isPlain && !isWord ? (value as string) : JSON.stringify(value);
}
