// The schema of an AddressPool, its flat value, and its status: for the API, for pools in the settings and for the CRD.
// Pure.

import { type AddressRange, parseBlock } from '../base/ip-range.ts';
import {
  boolean,
  listOf,
  object,
  oneOf,
  someOf,
  textReader,
  textsByName,
  type Valid,
  wholeNumber,
} from '../base/validate.ts';
import type { Family } from '../model/load-balancer.ts';
import {
  ADDRESS_API_VERSION,
  label,
  labelValue,
  named,
  qualifiedName,
  subdomain,
  uid,
} from './object-names.ts';

/** Addresses for Services. */
export interface AddressPool {
  readonly kind: 'AddressPool';
  /** The name alone: pools have no namespace. */
  readonly key: string;
  readonly name: string;
  /** If two pools have one name, that of the settings counts. */
  readonly source: 'settings' | 'api';
  readonly uid: string;
  /** In the order of the object, without the addresses that `avoidBuggyIPs` excludes. */
  readonly blocks: readonly AddressRange[];
  /** The highest number is used first; of equal ones, the first by name. */
  readonly priority: number;
  /** False: only for Services that request the pool by name, or one of its addresses. */
  readonly auto: boolean;
  /** Gives no new addresses. */
  readonly draining: boolean;
  readonly shareAcrossNamespaces: boolean;
  /** Empty: all. */
  readonly namespaces: readonly string[];
  readonly selector: Selector;
}

const blockNot =
  'is not a CIDR without host bits (192.0.2.0/24), a range (192.0.2.10-192.0.2.20) or an address, of unicast addresses';

/** [first, last] of addresses that cannot be VIPs: unspecified, multicast, reserved, link-local, IPv4-mapped. */
const UNSERVABLE: Readonly<Record<Family, readonly (readonly [bigint, bigint])[]>> = {
  v4: [
    [0n, 0xffffffn],
    [0xe0000000n, 0xffffffffn],
  ],
  v6: [
    [0n, 0n],
    [0x10000n, 0xffffffffn],
    [0xffff00000000n, 0xffffffffffffn],
    [0xfe80n << 112n, (0xfec0n << 112n) - 1n],
    [0xff00n << 112n, (1n << 128n) - 1n],
  ],
};

const block = textReader((text) => {
  const parsed = parseBlock(text);
  if (parsed === undefined) return undefined;
  const { family, first, last } = parsed.range;
  return UNSERVABLE[family].some(([from, to]) => first <= to && last >= from) ? undefined : parsed;
}, blockNot).meta({
  type: 'string',
  maxLength: 100,
  pattern: '^[0-9A-Fa-f:.]+(/[0-9]{1,3}| *- *[0-9A-Fa-f:.]+)?$',
});

const expression = object({
  key: named(qualifiedName),
  operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'),
  values: listOf(named(labelValue)).or([]),
}).refine(({ operator, values }, refuse) => {
  const wantsValues = operator === 'In' || operator === 'NotIn';
  if (wantsValues !== values.length > 0) {
    const message = wantsValues ? `missing, ${operator} needs at least one` : `${operator} takes none`;
    refuse(['values'], message);
  }
});

const selector = object({
  matchLabels: textsByName(qualifiedName, labelValue).or({}),
  matchExpressions: listOf(expression).or([]),
});

/** A label selector of Kubernetes; an empty one selects everything. */
export type Selector = Valid<typeof selector>;

const EVERYTHING: Selector = { matchLabels: {}, matchExpressions: [] };

/** The `spec` of an AddressPool; in the settings, the pool without its name. */
export const poolSpecSchema = object({
  blocks: someOf(block, 'block').meta({
    description:
      'The addresses of the pool: CIDRs, ranges as in 192.0.2.10-192.0.2.20, single addresses; IPv4 and IPv6.',
    minItems: 1,
    maxItems: 1000,
  }),
  priority: wholeNumber(-1000, 1000)
    .meta({
      description:
        'The pool with the highest number is used first; of equal ones, the first by name. Default 0.',
    })
    .or(0),
  auto: boolean()
    .meta({
      description:
        'False: only Services that request this pool by name, or one of its addresses, get one. Default true.',
    })
    .or(true),
  draining: boolean()
    .meta({ description: 'True: gives no new addresses; Services keep those that they have. Default false.' })
    .or(false),
  avoidBuggyIPs: boolean()
    .meta({
      description:
        'Leaves out the first and the last address (network and broadcast) of each IPv4 CIDR. Default false.',
    })
    .or(false),
  shareAcrossNamespaces: boolean()
    .meta({
      description:
        'True: Services of different namespaces may share an address by the same sharing key. Default false.',
    })
    .or(false),
  serviceAllocation: object({
    namespaces: listOf(named(label))
      .meta({ description: 'Only Services of these namespaces. Empty: of all namespaces.' })
      .or([]),
    serviceSelector: selector
      .meta({ description: 'Only Services whose labels match. Empty: all.' })
      .or(EVERYTHING),
  })
    .meta({
      description: 'The Services that may have addresses of the pool: those that meet all conditions.',
    })
    .or({ namespaces: [], serviceSelector: EVERYTHING }),
});

export const poolSchema = object({
  metadata: object({
    name: named(subdomain),
    uid: uid().or(''),
  }),
  spec: poolSpecSchema,
});

export function poolOf(
  name: string,
  source: AddressPool['source'],
  uid: string,
  spec: Valid<typeof poolSpecSchema>,
): AddressPool {
  const { blocks, avoidBuggyIPs, serviceAllocation, ...rules } = spec;
  return {
    kind: 'AddressPool',
    key: name,
    name,
    source,
    uid,
    blocks: blocks.map(({ range, isCidr }) => (avoidBuggyIPs && isCidr ? withoutEnds(range) : range)),
    ...rules,
    namespaces: serviceAllocation.namespaces,
    selector: serviceAllocation.serviceSelector,
  };
}

/** A /31 or a /32 has neither network nor broadcast address (RFC 3021). */
function withoutEnds(range: AddressRange): AddressRange {
  if (range.family === 'v6' || range.last - range.first < 2n) return range;
  return { ...range, first: range.first + 1n, last: range.last - 1n };
}

/** From the API, or from a manifest. */
export function storedPoolOf({ metadata, spec }: Valid<typeof poolSchema>): AddressPool {
  return poolOf(metadata.name, 'api', metadata.uid, spec);
}

/** How many addresses of one family the pool has, and how many are in which state. */
export interface AddressCount {
  readonly total: bigint;
  readonly free: bigint;
  readonly used: bigint;
  readonly held: bigint;
  readonly conflicting: bigint;
}

export interface PoolFault {
  /** `Invalid`: the object cannot be read; its last readable version counts. */
  readonly state: 'Conflicting' | 'Invalid';
  readonly message: string;
}

/**
 * The `status` of an AddressPool: all fields that a server-side apply of the status owns. Numbers are texts, because an
 * IPv6 pool has more addresses than an int64 can count. The UID keeps the status of a deleted pool from its successor.
 */
export function poolStatusManifest(
  pool: AddressPool,
  counts: { readonly v4: AddressCount; readonly v6: AddressCount },
  fault: PoolFault | undefined,
): Readonly<Record<string, unknown>> {
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressPool',
    metadata: { name: pool.name, uid: pool.uid },
    status: {
      ...(fault ?? { state: pool.draining ? 'Draining' : 'Active' }),
      ipv4: countTexts(counts.v4),
      ipv6: countTexts(counts.v6),
    },
  };
}

/** The status of a pool that has never been readable. */
export function unreadPoolManifest(name: string, fault: PoolFault): Readonly<Record<string, unknown>> {
  return { apiVersion: ADDRESS_API_VERSION, kind: 'AddressPool', metadata: { name }, status: { ...fault } };
}

function countTexts(counts: AddressCount): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, String(count)]));
}
